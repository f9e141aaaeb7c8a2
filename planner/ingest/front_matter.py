"""YAML front matter of Markdown: attributes of the source."""

from __future__ import annotations

from dataclasses import dataclass, field

import regex
import yaml

from planner.errors import MalformedInput
from planner.ingest.facts import json_attributes
from planner.types import JsonObject

MAX_BYTES = 64 * 1024

_FENCED = regex.compile(
    r"---[^\S\n]*\n(?!\s*\n)(?:(?:---|\.\.\.)[^\S\n]*(?:\n|\Z)|(.*?)\n(?:---|\.\.\.)[^\S\n]*(?:\n|\Z))",
    regex.DOTALL,
)


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The attributes, and how many lines the front matter takes; none: 0."""

    attributes: JsonObject = field(default_factory=dict)
    lines: int = 0


def front_matter(text: str) -> FrontMatter:
    """Read the front matter at the start of a document.

    As in Pandoc, `---` followed by a blank line is a rule and no front matter; nor is YAML that is not a
    mapping. Raises MalformedInput naming the line that is not YAML.
    """
    match = _FENCED.match(text)
    if match is None:
        return FrontMatter()
    body = match[1] or ""
    if len(body) > MAX_BYTES:
        raise MalformedInput(
            f"the front matter is longer than {MAX_BYTES} characters; is its end `---` missing?"
        )
    try:
        loaded = yaml.safe_load(body)
    except RecursionError:
        raise MalformedInput("the front matter is nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:
        line = 2 + _line(error, body)
        raise MalformedInput(
            f"line {line}: the front matter is not valid YAML: {_problem(error)}", line=line
        ) from None
    if loaded is not None and not isinstance(loaded, dict):
        return FrontMatter()
    return FrontMatter(json_attributes(loaded or {}, "front matter"), match[0].count("\n"))


def _line(error: Exception, body: str) -> int:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return int(error.problem_mark.line)
    if isinstance(error, yaml.reader.ReaderError):
        return body.count("\n", 0, error.position)
    return 0


def _problem(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem:
        return str(error.problem)
    return str(error).split("\n")[0]
