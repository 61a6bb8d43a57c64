"""What an error says, in one line."""

_MAX_CHARACTERS = 200


def first_line(error: BaseException) -> str:
  """Returns the first line of what an error says, or the name of its class."""
  text = str(error).strip() or type(error).__name__
  return text.splitlines()[0][:_MAX_CHARACTERS]


def said(error: BaseException) -> str:
  """Returns what an error says; of the system's, without their numbers."""
  if isinstance(error, OSError) and error.filename and error.strerror:
    return f'{error.filename}: {error.strerror}'
  return str(error)
