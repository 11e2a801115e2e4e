"""Maps the console's action names to their form parsers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from barnabas.console.writing.config_actions import AlterConfigs
from barnabas.console.writing.form import Form
from barnabas.console.writing.group_actions import ResetOffsets
from barnabas.console.writing.leader_actions import ElectLeaders
from barnabas.console.writing.plan import Action
from barnabas.console.writing.reassign_actions import CancelReassignment, ReassignPartitions
from barnabas.console.writing.record_actions import DeleteRecords, ProduceRecord
from barnabas.console.writing.throttle_actions import ClearThrottles
from barnabas.console.writing.topic_actions import AddPartitions, CreateTopic, DeleteTopic

ACTIONS: Final[Mapping[str, Callable[[Form], Action]]] = {
    CreateTopic.name: CreateTopic.parse,
    AddPartitions.name: AddPartitions.parse,
    DeleteTopic.name: DeleteTopic.parse,
    AlterConfigs.name: AlterConfigs.parse,
    ResetOffsets.name: ResetOffsets.parse,
    ElectLeaders.name: ElectLeaders.parse,
    ReassignPartitions.name: ReassignPartitions.parse,
    CancelReassignment.name: CancelReassignment.parse,
    ClearThrottles.name: ClearThrottles.parse,
    ProduceRecord.name: ProduceRecord.parse,
    DeleteRecords.name: DeleteRecords.parse,
}
