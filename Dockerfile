# The image of every process of a deployment: `docker build --tag neuraxis:0.1.0 .`
# The same Python that the tests run on. For builds that are the same bit for bit, name it with its digest:
# --build-arg PYTHON=python:3.11-slim-bookworm@sha256:...
ARG PYTHON=python:3.11-slim-bookworm

FROM ${PYTHON} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_INPUT=1
WORKDIR /source
RUN python -m venv /opt/build && python -m venv --without-pip /opt/neuraxis
# What changes least comes first, so that a change of the code installs no dependency again.
COPY requirements-build.lock requirements-runtime.lock ./
# nkeys is published as source alone, of pure Python.
RUN /opt/build/bin/python -m pip install --require-hashes --only-binary :all: --requirement requirements-build.lock \
    && /opt/build/bin/python -m pip --python /opt/neuraxis/bin/python install --require-hashes \
        --only-binary :all: --no-binary nkeys --requirement requirements-runtime.lock
COPY pyproject.toml README.md LICENSE ./
COPY schemas schemas
COPY events events
COPY actors actors
COPY deploy deploy
COPY bench bench
COPY neuraxis_server neuraxis_server
RUN /opt/build/bin/python -m pip wheel --no-deps --no-build-isolation --wheel-dir /wheel . \
    && /opt/build/bin/python -m pip --python /opt/neuraxis/bin/python install --no-deps --no-index /wheel/*.whl

FROM ${PYTHON}
LABEL org.opencontainers.image.title="neuraxis" \
      org.opencontainers.image.description="A decision control plane for LLM agents" \
      org.opencontainers.image.licenses="Apache-2.0"
# No installer in what runs.
RUN rm -rf /usr/local/lib/python3*/site-packages/* /usr/local/lib/python3*/ensurepip /usr/local/bin/pip* \
    && groupadd --system --gid 10001 neuraxis \
    && useradd --system --uid 10001 --gid 10001 --home-dir /var/lib/neuraxis --shell /usr/sbin/nologin neuraxis \
    && install --directory --owner 10001 --group 10001 --mode 0700 /var/lib/neuraxis
COPY --from=build /opt/neuraxis /opt/neuraxis
ENV PATH=/opt/neuraxis/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    NEURAXIS_RUNTIME__HEALTH_FILE=/tmp/health.json
USER 10001:10001
WORKDIR /var/lib/neuraxis
# The root may be read-only: only /tmp and, for the ledger, /var/lib/neuraxis are written.
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=3 CMD ["neuraxis-probe", "ready"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["neuraxis"]
CMD ["--help"]
