"""What an error says, in one line."""

_MAX_CHARACTERS = 200


def first_line(error: BaseException) -> str:
  """Returns the first line of what an error says, or the name of its class."""
  text = str(error).strip() or type(error).__name__
  return text.splitlines()[0][:_MAX_CHARACTERS]
