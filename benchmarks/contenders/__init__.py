"""Who competes in `losse bench accuracy`?"""
