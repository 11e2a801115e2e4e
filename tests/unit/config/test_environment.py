"""Which variables of the environment are settings, and which are others'."""

from __future__ import annotations

import pytest

from barnabas.config import BrokerConfig, environment_warning, from_environment

OTHERS = {
    "KAFKA_BOOTSTRAP_SERVERS": "kafka:9092",
    "KAFKA_HEAP_OPTS": "-Xmx1G",
    "KAFKA_OPTS": "-Da=b",
    "KAFKA_LOG4J_OPTS": "-Da=b",
    "KAFKA_JMX_OPTS": "-Da=b",
    "KAFKA_JMX_PORT": "9999",
    # As Kubernetes has it in every container beside a service called kafka.
    "KAFKA_PORT": "tcp://10.0.0.1:9092",
    "KAFKA_PORT_9092_TCP": "tcp://10.0.0.1:9092",
    "KAFKA_PORT_9092_TCP_ADDR": "10.0.0.1",
    "KAFKA_PORT_9092_TCP_PORT": "9092",
    "KAFKA_PORT_9092_TCP_PROTO": "tcp",
    "KAFKA_SERVICE_HOST": "10.0.0.1",
    "KAFKA_SERVICE_PORT": "9092",
    "KAFKA_SERVICE_PORT_CLIENTS": "9092",
    # A service whose name and "port" make that of a config.
    "KAFKA_BARNABAS_METRICS_PORT": "tcp://10.0.0.2:80",
    "KAFKA_": "",
    "KAFKA__": "",
}


def test_variables_of_configs_are_those_of_kafkas_container_image() -> None:
    settings = {
        "KAFKA_LOG_DIRS": "/data",
        "KAFKA_BROKER_ID": "3",
        "KAFKA_LISTENER_NAME_OUT___SIDE_SSL_CLIENT_AUTH": "none",
        "KAFKA_LISTENER_NAME_IN__SIDE_SSL_CLIENT_AUTH": "none",
        "PATH": "/bin",
        "kafka_num_partitions": "7",
    }
    found = from_environment({**settings, **OTHERS})
    assert found == {
        "log.dirs": "/data",
        "broker.id": "3",
        "listener.name.out-side.ssl.client.auth": "none",
        "listener.name.in_side.ssl.client.auth": "none",
    }
    assert environment_warning(settings) is None


@pytest.mark.parametrize("variable", OTHERS)
def test_ux_3_any_other_variable_is_left_out_and_named(variable: str) -> None:
    """A start may not depend on what a shell or Kubernetes has for others."""
    environ = {variable: OTHERS[variable], "KAFKA_HOME": "/opt/kafka", "KAFKA_VERSION": "3.9.1"}
    BrokerConfig(from_environment(environ))
    warning = environment_warning(environ)
    assert warning is not None and warning.startswith(f"{variable} in the environment: ignored")


def test_ux_3_all_of_them_are_in_one_line() -> None:
    warning = environment_warning({**OTHERS, **{f"KAFKA_X{n}": "" for n in range(20)}})
    assert warning is not None and "\n" not in warning
    assert "KAFKA_BOOTSTRAP_SERVERS, KAFKA_HEAP_OPTS, " in warning and " more in the" in warning
    assert "-Xmx1G" not in warning, "values may be secrets"


def test_ux_3_a_mistyped_config_is_recognized() -> None:
    warning = environment_warning({"KAFKA_NUM_PARTITION": "3"})
    assert warning is not None
    assert warning.startswith("KAFKA_NUM_PARTITION (KAFKA_NUM_PARTITIONS?) in the environment")
