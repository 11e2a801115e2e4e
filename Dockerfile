# docker build -t barnabas .
# docker run -p 127.0.0.1:9092:9092 -v barnabas:/var/lib/barnabas barnabas
#
# Settings are variables, named as in Kafka's image: -e KAFKA_NUM_PARTITIONS=3 sets
# num.partitions=3. Other commands run as well: docker run barnabas topics --help

FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml setup.py README.md LICENSE ./
COPY src src
RUN python -m venv --without-pip /opt/barnabas \
    && pip --python /opt/barnabas/bin/python install --no-cache-dir .

FROM python:3.13-slim
RUN useradd --system --uid 9092 --home-dir /var/lib/barnabas barnabas \
    && install --directory --owner=barnabas --mode=700 /var/lib/barnabas
COPY --from=build /opt/barnabas /opt/barnabas
ENV PATH=/opt/barnabas/bin:$PATH \
    KAFKA_LISTENERS=PLAINTEXT://:9092 \
    KAFKA_LOG_DIRS=/var/lib/barnabas/log \
    KAFKA_BARNABAS_METRICS_PORT=9404 \
    KAFKA_BARNABAS_METRICS_HOST=localhost
USER 9092
WORKDIR /var/lib/barnabas
VOLUME /var/lib/barnabas
EXPOSE 9092
# The broker is ready when it serves its listeners, wherever they are. Metrics are on the same port:
# to let a Prometheus outside reach them, add -e KAFKA_BARNABAS_METRICS_HOST=0.0.0.0 -p 9404:9404.
HEALTHCHECK --interval=10s --timeout=5s --start-period=5m --start-interval=1s \
    CMD ["python", "-c", "import http.client as h, os; c = h.HTTPConnection('localhost', int(os.environ['KAFKA_BARNABAS_METRICS_PORT']), timeout=4); c.request('GET', '/readyz'); exit(c.getresponse().status != 200)"]
ENTRYPOINT ["barnabas"]
CMD ["server", "start"]
