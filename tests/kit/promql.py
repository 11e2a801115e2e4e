"""Resolves expressions of PromQL against the samples that brokers and collectors really export.

    exported = Exported()
    exported.add("broker", "127.0.0.1:9404", page)
    exported.labels_of('sum by (topic) (kafka_log_log_size{topic!=""})')    # {"topic"}

An expression that finds no sample on any page, or uses a label that no sample has, raises
`Unresolved`, which says what is missing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

import promql_parser as promql
from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[str]

_OF_PROMETHEUS = ("job", "instance")
_NUMBERS = ("time", "scalar")
_WITHOUT_LABELS = ("absent", "absent_over_time", "vector")


class Unresolved(Exception):
    """An expression needs a name or a label that nothing exports."""


class Exported:
    """The samples of some metrics pages, as Prometheus stores them."""

    def __init__(self) -> None:
        self.samples: dict[str, list[dict[str, str]]] = defaultdict(list)
        """The labels of each sample, by its name."""

    def add(self, job: str, instance: str, page: str) -> None:
        """Add the page of one target."""
        target = {"job": job, "instance": instance}
        self.samples["up"].append(target)
        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                self.samples[sample.name].append({**sample.labels, **target})

    def labels_of(self, expression: str) -> Labels:
        """Return the labels that its result may have. Raises `Unresolved`."""
        try:
            parsed = promql.parse(expression)
        except ValueError as error:
            raise Unresolved(f"{expression}: {error}") from error
        return self._result(parsed) or frozenset()

    def _result(self, expr: promql.Expr) -> Labels | None:
        """Return the labels of a vector; None for a number."""
        if isinstance(expr, promql.NumberLiteral):
            return None
        if isinstance(expr, promql.VectorSelector):
            return self._selected(expr)
        if isinstance(expr, promql.MatrixSelector):
            return self._selected(expr.vector_selector)
        if isinstance(expr, promql.ParenExpr | promql.UnaryExpr | promql.SubqueryExpr):
            return self._result(expr.expr)
        if isinstance(expr, promql.Call):
            return self._called(expr)
        if isinstance(expr, promql.AggregateExpr):
            return self._aggregated(expr)
        if isinstance(expr, promql.BinaryExpr):
            return self._combined(expr)
        raise Unresolved(f"{expr.prettify()}: the test does not know {type(expr).__name__}")

    def _selected(self, selector: promql.VectorSelector) -> Labels:
        samples = self.samples.get(selector.name or "")
        if not samples:
            raise Unresolved(f"nothing exports {selector.name}")
        known = _keys(samples)
        matchers = selector.matchers.matchers
        if unknown := {each.name for each in matchers} - known:
            raise Unresolved(
                f"{selector.name} has no label {sorted(unknown)}, only {sorted(known)}"
            )
        chosen = [each for each in samples if all(_matches(one, each) for one in matchers)]
        if not chosen:
            raise Unresolved(f"no sample of {selector.name} matches {selector.prettify()}")
        return _keys(chosen)

    def _called(self, call: promql.Call) -> Labels | None:
        vectors = [found for found in map(self._result, call.args) if found is not None]
        if call.func.name in _NUMBERS:
            return None
        return frozenset() if call.func.name in _WITHOUT_LABELS else vectors[0]

    def _aggregated(self, aggregate: promql.AggregateExpr) -> Labels:
        inner = self._result(aggregate.expr) or frozenset()
        modifier = aggregate.modifier
        if modifier is None:
            return inner if aggregate.param is not None else frozenset()  # topk keeps the labels
        named = frozenset(modifier.labels)
        if not named <= inner:
            raise Unresolved(
                f"{aggregate.prettify()}: groups by {sorted(named - inner)}, but there are only "
                f"{sorted(inner)}"
            )
        return named if modifier.type == promql.AggModifierType.By else inner - named

    def _combined(self, binary: promql.BinaryExpr) -> Labels | None:
        left, right = self._result(binary.lhs), self._result(binary.rhs)
        if left is None or right is None:
            return right if left is None else left
        matching = None if binary.modifier is None else binary.modifier.matching
        if matching is None:
            if left != right:
                raise Unresolved(
                    f"{binary.prettify()}: {sorted(left)} on the left never match {sorted(right)} "
                    "on the right"
                )
            return left
        if matching.type != promql.LabelModifierType.Include:
            raise Unresolved(f"{binary.prettify()}: the test knows only `on`")
        if not set(matching.labels) <= left & right:
            raise Unresolved(f"{binary.prettify()}: {matching.labels} are not on both sides")
        return left


def _keys(samples: Iterable[dict[str, str]]) -> Labels:
    return frozenset(name for sample in samples for name, value in sample.items() if value)


def _matches(matcher: promql.Matcher, labels: dict[str, str]) -> bool:
    value = labels.get(matcher.name, "")
    if matcher.op == promql.MatchOp.Equal:
        return value == matcher.value
    if matcher.op == promql.MatchOp.NotEqual:
        return value != matcher.value
    found = re.fullmatch(matcher.value, value) is not None
    return found if matcher.op == promql.MatchOp.Re else not found
