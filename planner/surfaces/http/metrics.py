"""What the service counts, for Prometheus. No scope, plan or question is a label."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from planner.store.connect import Store
from planner.trace.record import Record

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""The methods that are counted by name; a client may invent others."""

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
TOKENS = (1, 10, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000)


class Metrics:
    """The instruments of one application, in a registry of their own."""

    def __init__(self, store: Store) -> None:
        """Make the instruments; those of the pool are read when they are asked for."""
        self.registry = registry = CollectorRegistry()
        self.plans = Counter("planner_plans", "Plans made, by outcome", ["outcome"], registry=registry)
        self.stages = Histogram(
            "planner_stage_seconds", "Time of a plan's stages", ["stage"], buckets=SECONDS, registry=registry
        )
        self.utilisation = Histogram(
            "planner_budget_utilisation",
            "Share of its budget that a plan uses",
            buckets=SHARES,
            registry=registry,
        )
        self.stranded = Histogram(
            "planner_budget_stranded_tokens",
            "Tokens of a budget that the cap by source left unused",
            buckets=TOKENS,
            registry=registry,
        )
        self.underfilled = Counter(
            "planner_ann_underfilled",
            "Plans whose vector index returned less than was asked of it",
            registry=registry,
        )
        self.requests = Counter(
            "planner_http_requests", "Requests answered", ["route", "method", "status"], registry=registry
        )
        self.request_seconds = Histogram(
            "planner_http_request_seconds", "Time of a request", ["route"], buckets=SECONDS, registry=registry
        )
        self.running = Gauge("planner_http_in_flight", "Requests being answered", registry=registry)
        registry.register(PoolCollector(store))
        for outcome in ("planned", "refused", "failed"):
            self.plans.labels(outcome)

    def plan(self, record: Record) -> None:
        """Count a plan as it is recorded, whichever surface asked for it."""
        self.plans.labels(record.outcome).inc()
        for stage, milliseconds in record.timings.items():
            self.stages.labels(stage).observe(milliseconds / 1_000)
        if record.recall.get("semantic", {}).get("underfilled"):
            self.underfilled.inc()
        budget = record.selection.budget.budget
        if record.outcome == "planned" and budget:
            self.utilisation.observe(record.selection.used / budget)
            self.stranded.observe(record.selection.stats["budget_stranded_by_cap"])

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        known = method if method in METHODS else "other"
        self.requests.labels(route, known, str(status)).inc()
        self.request_seconds.labels(route).observe(seconds)

    @contextmanager
    def in_flight(self) -> Iterator[None]:
        """Count a request while it is being answered."""
        self.running.inc()
        try:
            yield
        finally:
            self.running.dec()

    def text(self) -> bytes:
        """Return all of it in Prometheus's text format."""
        return generate_latest(self.registry)


class PoolCollector(Collector):
    """The pool's connections, read from its own figures."""

    def __init__(self, store: Store) -> None:
        """Read a store's pool."""
        self.store = store

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield what the pool says of itself."""
        stats = self.store.pool.get_stats()
        held = stats.get("pool_size", 0)
        idle = stats.get("pool_available", 0)
        sizes = GaugeMetricFamily("planner_pool_connections", "Connections of the pool", labels=["state"])
        sizes.add_metric(["used"], held - idle)
        sizes.add_metric(["idle"], idle)
        sizes.add_metric(["most"], stats.get("pool_max", 0))
        yield sizes
        waiting = stats.get("requests_waiting", 0)
        yield GaugeMetricFamily("planner_pool_waiting", "Calls that wait for a connection", value=waiting)
