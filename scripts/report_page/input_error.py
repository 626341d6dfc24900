"""What the user gave cannot be used."""


class InputError(Exception):
    """One line for the user: what is wrong, where, and what would be right."""
