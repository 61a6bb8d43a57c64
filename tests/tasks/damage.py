"""Files that came to harm: cut, mixed up, overwritten."""

from hypothesis import strategies as st

KINDS = ('cut', 'swap', 'bytes', 'repeat', 'random')


def damaged(content, kind, data):
  """Returns a file's bytes, damaged in one of `KINDS`; `data` draws where."""
  place = data.draw(st.integers(0, len(content)))
  if kind == 'cut':
    return content[:place]
  if kind == 'bytes':
    return content[:place] + data.draw(st.binary()) + content[place + 3 :]
  if kind == 'repeat':
    return content + content[place:]
  if kind == 'swap':
    lines = content.splitlines(keepends=True)
    return b''.join(data.draw(st.permutations(lines)))
  return data.draw(st.binary() | st.text().map(str.encode))
