"""The order in which sublayers compose a window."""

import pytest

from regulargpt_jax.construction import schedule


@pytest.mark.parametrize('chunk_size', [*range(2, 70), 127, 128])
def test_every_window_is_composed_in_order_once(chunk_size):
  # What the product at each position covers; the window's last is at 0.
  window = range(-chunk_size, chunk_size)
  product = {m: [m] for m in window}
  steps = schedule.steps(chunk_size)
  for step in steps:
    assert 0 < step.distance < chunk_size
    product = {
      m: (product if step.doubles else {e: [e] for e in window}).get(
        m - step.distance, []
      )
      + product[m]
      for m in window
    }
  assert product[0] == list(range(1 - chunk_size, 1))
  assert len(steps) <= 2 * (chunk_size.bit_length() - 1)
  if chunk_size.bit_count() == 1:
    assert len(steps) == chunk_size.bit_length() - 1
