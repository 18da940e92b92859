"""The accuracy of the recommended model and of others on transitions of environments."""
