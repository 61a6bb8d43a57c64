"""Tests of the automata of regular expressions."""

import itertools
import re

from automata.fa import dfa, nfa
import hypothesis
from hypothesis import strategies as st
import pytest

from tasks.automata import fields
from tasks.automata import regex as regex_lib
from tests.tasks import automata

# Expressions that automata-lib and Python read alike.
_REGEXES = st.recursive(
  st.sampled_from(['a', 'b', '.', '()', '[a]', '[^a]']),
  lambda parts: st.builds(
    str.format,
    st.sampled_from(
      ['{}{}', '({}|{})', '({})*', '({})+', '({})?', '({}){{2}}']
    ),
    parts,
    parts,
  ),
  max_leaves=6,
)


class TestRegex:
  @pytest.mark.parametrize(
    'regex',
    [
      '(ab)*',
      'a(ba)*|bb',
      '.*aa.*',
      '[^b]{2,3}b+',
      '(a|b)*a(a|b){2}',
      'a?b?c?|[bc]*',
      '()|a',
      'a|()',
      '(()|b)a',
      '(a(a(ab)*b)*b)*',
      'ab*c+',
      '|a',
      '(a|)b',
      'a||b|',
      '^(ab)*$',
      '^a|^b$|(ab$)',
      '(^)ab',
      '(?:ab)*a{,2}',
      'a{0}b',
      '(ab){0,0}|a',
      '(a?){2,3}b',
      '[a-c]c',
      '[a-bc]*[^a-b]',
      r'[\w]a\w*',
      '((a*)+)?b+',
      '((a|b)*a){2,}',
    ],
  )
  def test_regex_has_the_language(self, regex):
    alphabet = 'abc' if 'c' in regex else 'ab'
    automaton = regex_lib.from_regex(regex, alphabet)
    strings = [
      string
      for length in range(8)
      for string in itertools.product(range(len(alphabet)), repeat=length)
    ]
    expected = re.compile(regex)
    for string in strings:
      text = ''.join(alphabet[v] for v in string)
      assert automata.accepts(automaton, string) == bool(
        expected.fullmatch(text)
      ), text
    # Minimal: no two states have the same strings after them.
    futures = {
      tuple(
        bool(automaton.accepting[automata.run(automaton, string, q)])
        for string in strings[:200]
      )
      for q in range(len(automaton.accepting))
    }
    assert len(futures) == len(automaton.accepting)
    # Numbered breadth first.
    assert automaton.start == 0
    first_met = list(dict.fromkeys([0, *automaton.transitions.flat]))
    assert first_met == list(range(len(automaton.accepting)))

  @pytest.mark.parametrize(
    ('regex', 'position', 'problem'),
    [
      ('a{99999999}', 1, 'more than 20,000'),
      ('a{2,99999999999}', 1, 'more than 20,000'),
      ('(ab', 0, 'never closed'),
      ('(a)((b)', 3, 'never closed'),
      ('ab)', 2, 'closes nothing'),
      ('a]', 1, 'closes nothing'),
      ('a}', 1, 'closes nothing'),
      ('(a&)b', 2, 'nothing to its right'),
      ('a^', 1, 'nothing to its right'),
      ('&a', 0, 'nothing to its left'),
      ('a~', 1, 'nothing to its right'),
      ('~*a', 0, 'nothing to its right'),
      ('a$b', 1, "'$' is an anchor"),
      ('(^a)*', 1, "'^' is an anchor"),
      ('a(b|^a)', 4, "'^' is an anchor"),
      ('(a|b$)a', 4, "'$' is an anchor"),
      ('(?=a)b', 1, '(?:...)'),
      ('*a', 0, 'nothing to repeat'),
      ('a|+', 2, 'nothing to repeat'),
      ('a(?)', 2, 'nothing to repeat'),
      ('{2}', 0, 'nothing to repeat'),
      ('a{2', 1, 'repetition'),
      ('a{x}', 1, 'repetition'),
      ('a{}', 1, 'repetition'),
      ('a{3,2}', 1, 'wrong order'),
      ('a[b', 1, 'list of symbols'),
      ('a[]', 1, 'list of symbols'),
      ('aac', 2, "'c' is not in the alphabet a, b"),
      ('a b', 1, "' ' is not in the alphabet"),
      ('a[bc]', 3, "'c' is not in the alphabet"),
      ('a[c-e]', 2, 'the range c-e has no symbol'),
      ('a[b-a]', 2, 'b-a is no range'),
      ('a[b-\n]', 2, r'b-\n is no range'),
      (r'a[\d-a]', 4, "'-' is not in the alphabet"),
      (r'a\bb', 1, r'\b is no escape (word boundaries'),
      (r'a\q', 1, r'\q is no escape'),
      (r'a\.', 1, "'.' is not in the alphabet"),
      ('ab\\', 2, 'stands before nothing'),
    ],
  )
  def test_regex_errors_say_where(self, regex, position, problem):
    with pytest.raises(ValueError, match=re.escape(problem)) as error:
      regex_lib.from_regex(regex, 'ab')
    assert f'position {position}:' in str(error.value)
    assert repr(regex) in str(error.value)

  @pytest.mark.parametrize(
    'regex', ['', '()', '(a|b)*', 'a&b', '.+', '.*a.*|b*']
  )
  def test_nothing_to_learn(self, regex):
    with pytest.raises(ValueError, match='nothing to learn'):
      regex_lib.from_regex(regex, 'ab')

  @pytest.mark.parametrize('alphabet', ['aa', '', ['ab', ''], ['a', '\ud800']])
  def test_bad_alphabets(self, alphabet):
    with pytest.raises(ValueError, match=r'(?i)symbol'):
      regex_lib.from_regex('a', alphabet)

  @pytest.mark.parametrize(
    ('regex', 'alphabet', 'accepted', 'rejected'),
    [
      (r'\(\[\)\\', '()[\\', ['([)\\'], ['([)', '()[\\']),
      (r'[+*\]-]+', '+*]-', ['+', ']-*'], ['']),
      (r'[\--]', '-+', ['-'], ['+']),
      ('a~b', 'ab~', ['a~b'], ['aa', 'a']),
      ('a$b', 'ab$', ['a$b'], ['ab']),
      (r'\$\~a', 'a$~', ['$~a'], ['a']),
      ('~(ab)', 'ab', ['', 'a', 'aba'], ['ab']),
      ('~a*', 'ab', ['', 'aa', 'ab'], []),
      ('a~(a*)', 'ab', ['ab', 'aab'], ['a', 'aa']),
      ('~~a', 'ab', ['a'], ['', 'aa']),
      ('.*a.*&~(.*bb.*)&..', 'ab', ['ab', 'aa'], ['bb', 'a', 'aab']),
      ('(~(a*)){2}', 'ab', ['bb', 'abab'], ['b', 'aa']),
      (r'\d+\s\D', '01 x', ['01 x', '0  '], ['0', '01x']),
      (r'a\n[^\n]', 'a\n', ['a\na'], ['a\n\n', 'a']),
      ('[0-9]*[a-z]', '01x', ['01x'], ['0', 'xx']),
    ],
  )
  def test_what_python_writes_otherwise(
    self, regex, alphabet, accepted, rejected
  ):
    read = regex_lib.to_fields(regex, alphabet)
    automaton = fields.to_automaton(read)
    for strings, answer in ((accepted, True), (rejected, False)):
      for string in strings:
        symbols = [alphabet.index(symbol) for symbol in string]
        assert automata.accepts(automaton, symbols) == answer, string

  def test_symbols_of_several_characters(self):
    alphabet = ['up', 'down', 'u', 'a+']
    automaton = regex_lib.from_regex(r'(up down|[u down])* upa\+{2}', alphabet)
    for symbols, answer in (
      ((0, 3, 3), True),
      ((0, 1, 2, 1, 0, 3, 3), True),
      ((2, 3, 3), False),
      ((0, 3), False),
    ):
      assert automata.accepts(automaton, symbols) == answer
    with pytest.raises(ValueError, match=r"position 3: symbol 'left'"):
      regex_lib.from_regex('up left', alphabet)

  @pytest.mark.parametrize(
    ('text', 'regex', 'symbols'),
    [
      ('01', '0', ['0', '1']),
      ('["up", "down"]', 'up', ['up', 'down']),
      ('a,', 'a,', ['a', ',']),
      ('["a", ","]', 'a', ['a', ',']),
      ('[]', r'\[', ['[', ']']),
      ('[(01)]', r'\[0', list('[(01)]')),
      ('[,]', r'\[,', list('[,]')),
      (' [ "a", "b" ]', 'a', ['a', 'b']),
    ],
  )
  def test_alphabets(self, text, regex, symbols):
    assert regex_lib.read_alphabet(text, regex) == symbols

  @pytest.mark.parametrize(
    ('text', 'regex', 'problem'),
    [
      ('a,b', 'a{1,2}b', "comma, which the regex never uses.*--alphabet='ab'"),
      ('a b', 'ab', "space, .* --alphabet='ab'"),
      ('up,down', 'up', r'--alphabet=\'\["up", "down"\]\''),
      ('["a", 1]', 'a', 'a list of strings.* it has 1'),
      ('["a"', 'a', 'cannot be read as JSON'),
      ('[ "a", b]', 'a', 'cannot be read as JSON'),
      ('[1,2]', 'a', 'a list of strings.* it has 1'),
      ('[["a"]]', 'a', r"a list of strings.* it has \['a'\]"),
    ],
  )
  def test_bad_texts_of_alphabets(self, text, regex, problem):
    with pytest.raises(ValueError, match=problem):
      regex_lib.read_alphabet(text, regex)

  @hypothesis.given(_REGEXES, _REGEXES, st.sampled_from('&^|'))
  @hypothesis.settings(max_examples=50)
  def test_operators_are_those_of_automata_lib(self, one, other, operator):
    regex = f'({one}){operator}({other})'
    parsed = nfa.NFA.from_regex(regex, input_symbols=set('ab'))
    expected = dfa.DFA.from_nfa(parsed, minify=True).to_complete()
    automaton = fields.to_automaton(regex_lib.to_fields(regex, 'ab'))
    assert automaton.outputs.size == len(expected.states)
    for length in range(6):
      for string in itertools.product(range(2), repeat=length):
        text = ''.join('ab'[v] for v in string)
        assert automata.accepts(automaton, string) == expected.accepts_input(
          text
        )

  @pytest.mark.parametrize(
    ('regex', 'num_states'),
    [
      ('(a{100}){40}', 4002),
      ('(a?){2000}b', 2003),
      ('|'.join(['ab'] * 3000), 4),
      ('(a|b)*a(a|b){9}', 1024),
      ('(a|b)*a(a|b){20}', None),
      ('((a{1000}){1000}){1000}', None),
      ('((){20000}){20000}', None),
      ('(~(a{1000})){30}', None),
    ],
  )
  def test_many_states_take_seconds_or_are_refused(self, regex, num_states):
    if num_states is None:
      with pytest.raises(ValueError, match=r'more than 20,000 states'):
        regex_lib.to_fields(regex, 'ab')
    else:
      found = regex_lib.to_fields(regex, 'ab')
      assert len(found['states']) == num_states

  def test_deep_nesting_is_refused(self):
    for regex in ('(' * 5000 + 'a' + ')' * 5000, '~' * 5000 + 'a'):
      with pytest.raises(ValueError, match='nested too deeply'):
        regex_lib.from_regex(regex, 'ab')

  @hypothesis.given(_REGEXES)
  @hypothesis.settings(max_examples=200)
  def test_any_regex_has_the_language(self, regex):
    expected = {
      string: bool(re.fullmatch(regex, ''.join('ab'[v] for v in string)))
      for length in range(1, 7)
      for string in itertools.product(range(2), repeat=length)
    }
    try:
      automaton = regex_lib.from_regex(regex, 'ab')
    except ValueError as error:
      assert 'nothing to learn' in str(error)
      assert len(set(expected.values())) == 1
    else:
      for string, answer in expected.items():
        assert automata.accepts(automaton, string) == answer, string

  @hypothesis.given(
    st.text('aaabbb()()|*+?.&[]^{}2,c~$-\\', max_size=8) | _REGEXES, st.data()
  )
  @hypothesis.settings(max_examples=200)
  def test_regexes_parse_or_say_where_they_do_not(self, regex, data):
    # Some are nearly right.
    if regex and data.draw(st.booleans()):
      place = data.draw(st.integers(0, len(regex) - 1))
      regex = regex[:place] + regex[place + 1 :]
    try:
      automaton = regex_lib.from_regex(regex, 'ab')
    except ValueError as error:
      assert re.search('position|nothing to learn', str(error))
    else:
      assert automaton.transitions.shape[1] == 2
