"""The world model on follow-the-leader regression."""
