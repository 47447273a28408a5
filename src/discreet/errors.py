"""Errors that are for the person who runs a training: what was wrong, where, what to do."""


class UserError(ValueError):
    """Something in the request, the data or the files has to change. The command line prints it and exits with 2."""


class BudgetExhausted(UserError):
    """The privacy filter refused a release: it would overshoot the budget. Nothing was charged."""


class CorruptFile(UserError):
    """A file of a run, a data set or an archive is not what it should be."""


class TrialsExhausted(UserError):
    """So many candidates in a row were rejected that the run stops; its guarantee allows for that."""
