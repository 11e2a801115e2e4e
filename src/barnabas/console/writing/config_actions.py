"""Changes the configs of a topic, a broker or all brokers, one by one."""

from __future__ import annotations

from barnabas.client.admin.configs import (
    BROKER,
    DYNAMIC_BROKER_CONFIG,
    DYNAMIC_DEFAULT_BROKER_CONFIG,
    DYNAMIC_TOPIC_CONFIG,
    TOPIC,
    ConfigEntry,
    ConfigOperation,
    ConfigOperationType,
    ConfigResource,
)
from barnabas.client.arguments import INT32_MAX
from barnabas.console.details import config_rows
from barnabas.console.problem import WebProblem
from barnabas.console.writing.form import Form
from barnabas.console.writing.plan import Access, Action, Change, Plan
from barnabas.console.writing.topic_actions import topic_field

_HIDDEN = "(hidden)"


class AlterConfigs(Action):
    """Sets some configs, and resets others to their defaults."""

    name = "alter-configs"

    def __init__(self, resource: ConfigResource, operations: list[ConfigOperation]) -> None:
        self._resource = resource
        self._operations = operations

    @classmethod
    def parse(cls, form: Form) -> AlterConfigs:
        """Return the action that a form describes."""
        resource = _resource(form)
        given, restored = form.pairs("set"), form.texts("delete")
        both = given.keys() & set(restored)
        if both:
            raise WebProblem(400, f"{min(both)}: it cannot be both set and reset")
        if not given and not restored:
            raise WebProblem(400, "set: name a config that is to change")
        operations = [
            ConfigOperation(each, ConfigOperationType.SET, value) for each, value in given.items()
        ]
        operations += [ConfigOperation(each, ConfigOperationType.DELETE) for each in restored]
        return cls(resource, sorted(operations))

    @property
    def permission(self) -> str:
        """Name the permissions that the action requires."""
        if self._resource.type == TOPIC:
            return f"AlterConfigs and DescribeConfigs on the topic {self._resource.name!r}"
        return "AlterConfigs and DescribeConfigs on the cluster"

    async def plan(self, access: Access) -> Plan:
        """Return each value before and after the change. The brokers validate the new values."""
        entries = {
            each.name: each
            for each in await access.admin.describe_configs(self._resource, include_synonyms=True)
        }
        await access.admin.alter_configs(self._resource, self._operations, validate_only=True)
        changes = []
        same = []
        for operation in self._operations:
            change = self._change(operation, entries.get(operation.name))
            if change.before == change.after:
                same.append(f"{operation.name} is already {change.after}.")
            else:
                changes.append(change)
        return Plan(f"alter configs of {self._about}", tuple(changes), tuple(same))

    async def apply(self, access: Access, plan: Plan) -> list[str]:
        """Make the changes, either all of them or none."""
        del plan
        await access.admin.alter_configs(self._resource, self._operations)
        return [f"The configs of {self._about} were changed."]

    @property
    def _about(self) -> str:
        if self._resource.type == TOPIC:
            return f"topic {self._resource.name}"
        return f"broker {self._resource.name}" if self._resource.name else "all brokers"

    @property
    def _own(self) -> tuple[int, str]:
        """The source of values that are set on the resource itself, and the name of
        the resource.
        """
        if self._resource.type == TOPIC:
            return DYNAMIC_TOPIC_CONFIG, "dynamic topic"
        if self._resource.name:
            return DYNAMIC_BROKER_CONFIG, "dynamic broker"
        return DYNAMIC_DEFAULT_BROKER_CONFIG, "dynamic default broker"

    def _change(self, operation: ConfigOperation, entry: ConfigEntry | None) -> Change:
        before = None if entry is None else _text(entry)
        if operation.op is ConfigOperationType.DELETE:
            return Change(operation.name, before, self._value_behind(entry))
        if entry is not None and entry.is_sensitive:
            return Change(operation.name, before, "(a new value, hidden)")
        return Change(operation.name, before, _with_source(operation.value or "", self._own[1]))

    def _value_behind(self, entry: ConfigEntry | None) -> str | None:
        """Return the value that takes effect when the value that is set on the resource itself is
        removed.
        """
        if entry is None:
            return None
        own = self._own[0]
        if entry.source != own:
            return _text(entry)
        behind = [each for each in entry.synonyms if each.source != own]
        if not behind:
            return "(the default)"
        name, value, source = behind[0]
        text = _text(entry._replace(value=value, source=source))
        # A broker's own config may have another name and unit: log.retention.hours.
        return text if name in (entry.name, f"log.{entry.name}") else f"{name}={text}"


def _resource(form: Form) -> ConfigResource:
    kind = form.choice("of", ("topic", "broker", "all brokers"))
    if kind == "topic":
        return ConfigResource(TOPIC, topic_field(form))
    if kind == "broker":
        return ConfigResource(BROKER, str(form.whole("broker", least=0, most=INT32_MAX)))
    return ConfigResource(BROKER, "")


def _text(entry: ConfigEntry) -> str:
    """Return the value and its source in the form in which the pages show them."""
    (row,) = config_rows([entry])
    return _with_source(_HIDDEN if row["value"] is None else row["value"], row["source"])


def _with_source(value: str, source: str) -> str:
    return f"{value or '(empty)'} ({source})"
