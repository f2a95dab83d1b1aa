"""The summary of a night."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from ._job import Config


class Summary(dict[str, Any]):
    """What the command prints with `--json`: a dictionary, which a notebook shows as a table."""

    @classmethod
    def of(cls, said: Mapping[str, Any], config: Config) -> Summary:
        """What a command said of a job. If its keys were given, its file is there no longer, and no command names it."""
        gone = ("next", "hint") if isinstance(config, Mapping) else ()
        return cls({key: value for key, value in said.items() if key not in gone})

    def _repr_html_(self) -> str:
        reasons = self.get("by_reason", {})
        rows = [(name, self[key]) for name, key in ROWS if isinstance(self.get(key), int)]
        rows += [(f"  {name.replace('_', ' ')}", count) for name, count in reasons.items() if isinstance(count, int)]
        title = " ".join(str(self[key]).replace("_", " ") for key in ("command", "dt", "status") if self.get(key))
        cells = "".join(f"<tr><th style='text-align:left'>{html.escape(name)}</th><td style='text-align:right'>{count:,}</td></tr>" for name, count in rows)
        return f"<table><caption>{html.escape(title)}</caption>{cells}</table>"


ROWS = [("documents", "n_documents"), ("keep", "n_keep"), ("drop", "n_drop"), ("skip", "n_skip"), ("clusters", "n_clusters"), ("pairs", "n_pairs")]
