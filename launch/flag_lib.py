"""Flags from the fields of an experiment, and errors as one line."""

from collections.abc import Callable, Sequence
import dataclasses
import json
import os
import reprlib
import select
import signal
import sys
from typing import Any, NoReturn

from absl import app, flags, logging
import jax

from experiments.engine import (
  allocation,
  devices,
  errors,
  json_reading,
  loop,
  progress,
  stopping,
)
from experiments.formal import automata, config, registries, strings

# The flags defined here belong to the launcher that asks for them: its --help
# shows them.
flags.disclaim_key_flags()

# What the fields that are names may be.
_NAMES = {
  'task': registries.TASK_BUILDERS,
  'architecture': registries.MODEL_BUILDERS,
  'curriculum': registries.CURRICULUM_BUILDERS,
  'preset': registries.PRESETS,
}

# What signals do once all is imported; see `launch`.
_USUAL = {
  signal.SIGINT: signal.default_int_handler,
  signal.SIGTERM: signal.SIG_DFL,
}
# Exit statuses: 1 for an error, 128 + the signal after a signal that saved.
_ERROR = 1
# Characters of an error.
_MAX_LINE = 2000


class _JsonParser(flags.ArgumentParser):
  """Parses a JSON object."""

  syntactic_help = 'a JSON object'

  def parse(self, argument):
    if isinstance(argument, str):
      argument = json_reading.parse(argument)
    if not isinstance(argument, dict):
      raise ValueError(f'expected a JSON object, got {reprlib.repr(argument)}')
    return argument

  def flag_type(self):
    return 'JSON'


class _AutomatonParser(flags.ArgumentParser):
  """Parses the path of a file that holds an automaton.

  Attributes:
    notes: What was done to the automaton, to be said once it is known who
      speaks.
  """

  syntactic_help = 'a file that holds an automaton'

  def __init__(self):
    self.notes = []

  def parse(self, argument):
    if isinstance(argument, str):
      argument, self.notes = automata.read(argument)
    return argument

  def flag_type(self):
    return 'file'


class _StringsParser(flags.ArgumentParser):
  """Parses the path of a file of labelled strings, or of several."""

  syntactic_help = 'a file of labelled strings'

  def __init__(self, is_list: bool):
    self._is_list = is_list

  def parse(self, argument):
    if not isinstance(argument, str):
      return argument
    if self._is_list:
      return strings.describe_tests(argument.split(','))
    return strings.describe(argument)

  def flag_type(self):
    return 'files' if self._is_list else 'file'


class _JsonSerializer(flags.ArgumentSerializer):
  """Writes a JSON object."""

  def serialize(self, value):
    return json.dumps(value)


def define_experiment(
  names: Sequence[str] | None = None,
  optional: bool = False,
  kind: type = config.Experiment,
) -> None:
  """Defines a flag for each field of an experiment.

  Args:
    names: The fields; None for all.
    optional: Whether a flag that is not given is None, not the default.
    kind: Class of the experiment.
  """
  for field in dataclasses.fields(kind):
    if names is not None and field.name not in names:
      continue
    default = getattr(kind(), field.name)
    given = None if optional else default
    help_text = field.metadata['help']
    choices = field.metadata.get('choices')
    if field.name in _NAMES and not choices:
      help_text += f' One of {", ".join(sorted(_NAMES[field.name]))}.'
    if choices:
      flags.DEFINE_enum(field.name, given, choices, help_text)
    elif isinstance(default, dict):
      is_automaton = field.metadata.get('is_automaton')
      parser = _AutomatonParser() if is_automaton else _JsonParser()
      if field.metadata.get('is_strings'):
        parser = _StringsParser(is_list=field.name == 'test_strings')
      flags.DEFINE(
        parser,
        field.name,
        given,
        help_text,
        serializer=_JsonSerializer(),
      )
      if is_automaton or field.metadata.get('is_strings'):
        flags.FLAGS[field.name].default_as_str = None
      if is_automaton:
        flags.DEFINE_boolean(
          'minimize', False, 'Whether to merge alike states of --automaton.'
        )
    else:
      define = {
        str: flags.DEFINE_string,
        bool: flags.DEFINE_boolean,
        int: flags.DEFINE_integer,
        float: flags.DEFINE_float,
      }[type(default)]
      define(field.name, given, help_text)


def experiment_values(
  names: Sequence[str] | None = None, kind: type = config.Experiment
) -> dict[str, Any]:
  """Returns the values of the flags that `define_experiment` defined.

  Says what was done to an automaton that a file describes.

  Raises:
    ValueError: If one is given that another gives no meaning.
  """
  values = {}
  for field in dataclasses.fields(kind):
    if names is not None and field.name not in names:
      continue
    flag = flags.FLAGS[field.name]
    values[field.name] = flag.value
    if field.metadata.get('is_automaton'):
      values[field.name] = _automaton(flag)
  given = {k: v for k, v in values.items() if flags.FLAGS[k].present}
  config.check_source(values, given)
  if held := values.get('strings'):
    config.check_range(config.has_strings_alone(values), given)
    # Strings say themselves how long they are.
    if 'sequence_length' in {*values} - {*given}:
      values['sequence_length'] = held['lengths'][-1][0]
  return values


def _check_not_empty() -> None:
  """Checks that no flag is given as the empty string.

  It would pass for one that is not given, as where a script's variable is not
  set.

  Raises:
    ValueError: If one is.
  """
  for name in flags.FLAGS:
    flag = flags.FLAGS[name]
    if flag.present and flag.value in ('', []):
      hint = ' (the regex of the empty string is "()")'
      raise ValueError(
        f'--{name} is empty{hint if name == "regex" else ""}; give it a value,'
        ' or leave it out.'
      )


def _automaton(flag: flags.Flag) -> dict[str, Any] | None:
  """Returns the value of an automaton's flag, perhaps minimised."""
  notes, automaton = list(flag.parser.notes), flag.value
  if flags.FLAGS['minimize'].value:
    if not automaton:
      raise ValueError(f'--minimize is for --{flag.name}.')
    automaton, note = automata.minimized(automaton)
    notes.append(note)
  for note in notes:
    progress.say(note)
  return automaton


def define_module(kind: str) -> flags.FlagHolder[str]:
  """Defines the flag with which a command may run a workdir's module.

  Args:
    kind: 'task' or 'model'.
  """
  return flags.DEFINE_string(
    f'{kind}_module',
    '',
    f"Module of the run's {kind}, where that is a user's own: it will run, and"
    ' so it is not enough that the workdir names it.',
  )


def numbers(
  flag: flags.FlagHolder, kind: Callable[[str], Any]
) -> list[int | float] | None:
  """Returns the numbers that a list flag holds, None if it is not given.

  Raises:
    ValueError: If one of them is none.
  """
  if flag.value is None:
    return None
  try:
    return [kind(text) for text in flag.value]
  except ValueError:
    what = 'whole numbers' if kind is int else 'numbers'
    raise ValueError(
      f'--{flag.name} must be {what}, as 1,2, got {",".join(flag.value)!r}.'
    ) from None


def define_processes() -> None:
  """Defines the flags of a program that runs as several processes."""
  flags.DEFINE_boolean(
    'distributed',
    False,
    'Whether this is one of several processes that work together; each is'
    ' started with the same command.',
  )
  flags.DEFINE_string(
    'coordinator_address',
    None,
    'Host and port of the first process. Like the next two it is found on Cloud'
    ' TPU, under Slurm and under Open MPI.',
  )
  flags.DEFINE_integer(
    'num_processes',
    None,
    'How many processes there are.',
  )
  flags.DEFINE_integer(
    'process_id',
    None,
    'Which one this is, from 0.',
  )


def join_processes() -> None:
  """Joins the other processes, if the flags say that there are any.

  Raises:
    ValueError: If a flag is missing or wrong.
  """
  names = ('coordinator_address', 'num_processes', 'process_id')
  values = [flags.FLAGS[name].value for name in names]
  if flags.FLAGS['distributed'].value:
    devices.join(*values)
    return
  for name, value in zip(names, values, strict=True):
    if value is not None:
      raise ValueError(f'--{name} is for --distributed.')


def _fail(message: str, status: int = _ERROR) -> NoReturn:
  """Ends the process with a message, one line, the last that it prints."""
  lines = filter(None, map(str.strip, message.splitlines()))
  line = ' '.join(lines).encode(errors='backslashreplace').decode()
  if len(line) > _MAX_LINE:  # A flag's value, with what is wrong behind it.
    line = f'{line[: _MAX_LINE // 2]} ... {line[-_MAX_LINE // 2 :]}'
  sys.stdout.flush()
  sys.stderr.flush()
  devices.end(line, status)  # All files are closed by now.


def _lost(reason: str) -> str:
  return f'{devices.LOST} ({reason})'


def _has_no_reader() -> bool:
  """Whether nobody reads what is printed, as `head` once it has enough."""
  poll = select.poll()
  poll.register(sys.stdout.fileno(), 0)  # Errors alone.
  return bool(poll.poll(0))


def _print_to_nobody() -> None:
  """Lets all that is still to be printed vanish, without an error at exit."""
  os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def keep_compilations() -> None:
  """Keeps compiled programs in the user's folder of caches."""
  cache = os.environ.get('XDG_CACHE_HOME', '')
  if not os.path.isabs(cache):  # Then it counts as not set.
    cache = os.path.expanduser('~/.cache')
  jax.config.update(
    'jax_compilation_cache_dir', os.path.join(cache, 'regulargpt_jax')
  )


def _parse(argv: Sequence[str]) -> list[str]:
  """Parses the flags; returns what is left."""
  try:
    return flags.FLAGS(argv)
  except SystemExit:  # Of --help, which absl ends as if it had failed.
    sys.exit(0)
  except flags.Error as error:
    _fail(f'Error: {error} (--help shows the flags.)')


def run(main: Callable[[], None]) -> None:
  """Runs a launcher: quiet, memory and compilations kept, one-line errors."""

  def guarded(argv: Sequence[str]) -> None:
    for number, usual in _USUAL.items():
      if signal.getsignal(number) != signal.SIG_IGN:
        signal.signal(number, usual)
    logging.set_verbosity(logging.ERROR)
    allocation.keep_freed()
    if not jax.config.jax_compilation_cache_dir:
      keep_compilations()
    sys.stdout.reconfigure(errors='backslashreplace')
    try:
      if len(argv) > 1:
        raise ValueError(
          f'Unexpected argument {argv[1]!r}; flags are written --name=value.'
        )
      _check_not_empty()
      main()
      sys.stdout.flush()
    except stopping.RunInterruptedError as error:
      if jax.process_count() > 1:
        jax.distributed.shutdown()  # All of them leave, and none is missed.
      _fail(str(error), 128 + error.signal_number)
    except KeyboardInterrupt:
      sys.exit(128 + signal.SIGINT)
    except (MemoryError, jax.errors.JaxRuntimeError) as error:
      line = errors.first_line(error) if str(error) else 'no memory left'
      _fail(f'Error: {_lost(line) if jax.process_count() > 1 else line}')
    except (ValueError, OSError, loop.DivergedError) as error:
      if isinstance(error, BrokenPipeError) and _has_no_reader():
        _print_to_nobody()
        sys.exit(128 + signal.SIGPIPE)
      # Orbax and JAX pass on a lost connection as errors of many kinds.
      is_lost = jax.process_count() > 1 and 'Gloo' in str(error)
      line = errors.said(error)
      _fail(f'Error: {_lost(line) if is_lost else line}')
    except ModuleNotFoundError as error:  # Of an extra that a command imports.
      _fail(f"Error: {error}; perhaps pip install -e '.[text]' is needed.")

  app.run(guarded, flags_parser=_parse)
