"""Texts whose words are as unevenly frequent as those of a language: by Zipf's law."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from random import Random

from planner.lexical.terms import STOP_WORDS

SYLLABLES = [consonant + vowel for consonant in "bdgklmnr" for vowel in "aeiou"]
WORDS, NAMES = 60_000, 2_000
"""How many words there are apart from those of grammar, and how many of them are written with a capital."""

GRAMMAR = 0.45
"""What share of a text is words of grammar, as in English."""

MENTIONED = 0.15
"""How many of the paragraphs name another document."""


class Wording:
    """A source of texts: the same seed gives the same texts."""

    def __init__(self, seed: int = 7) -> None:
        """Make up a vocabulary."""
        self.random = Random(seed)
        made = dict.fromkeys("".join(self.random.choices(SYLLABLES, k=2 + i % 4)) for i in range(3 * WORDS))
        self._words = list(made)[:WORDS]
        self._names = [word.capitalize() for word in list(made)[WORDS:][:NAMES]]
        self._grammar = sorted(STOP_WORDS)
        self._zipf = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(len(self._words))))
        self._zipf_grammar = list(itertools.accumulate(1 / (rank + 1) for rank in range(len(self._grammar))))

    def words(self, count: int) -> list[str]:
        """Return so many words, those of grammar among them."""
        said = self.random.choices(self._words, cum_weights=self._zipf, k=count)
        grammar = self.random.choices(self._grammar, cum_weights=self._zipf_grammar, k=count)
        return [g if self.random.random() < GRAMMAR else w for w, g in zip(said, grammar, strict=True)]

    def name(self) -> str:
        """Return a name of two words, as titles are."""
        return " ".join(self.random.sample(self._names, 2))


def corpus(nodes: int, seed: int = 7) -> Iterator[tuple[str, str]]:
    """Yield Markdown documents that make about `nodes` nodes: 40 paragraphs under 4 headings each."""
    wording = Wording(seed)
    random, titles = wording.random, [wording.name() for _ in range(max(1, nodes // 46))]
    for number, title in enumerate(titles):
        blocks = [f"# {title}"]
        for section in range(4):
            blocks.append(f"## Section {section} of {wording.name()}")
            for _ in range(10):
                said = wording.words(random.randint(8, 60))
                if random.random() < MENTIONED:
                    said.insert(random.randrange(len(said)), random.choice(titles))
                blocks.append(" ".join(said).capitalize() + ".")
        yield f"doc-{number:05}.md", "\n\n".join(blocks)


def questions(nodes: int, count: int, seed: int = 7) -> list[str]:
    """Return questions of 16 words that stand in that corpus one after another."""
    paragraphs = (text.split("\n\n")[7].split() for _, text in corpus(nodes, seed))
    return [" ".join(said[:16]) for said in itertools.islice(paragraphs, count)]
