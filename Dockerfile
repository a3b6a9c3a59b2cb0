# Inferometer for CI: docker build -t inferometer . && docker run --rm -v "$PWD:/work" inferometer summary trace.json.gz
# Extras: docker build --build-arg EXTRAS=mcp .
FROM python:3.12.14-slim-bookworm@sha256:0f5b26b9518d002b6173fd61daad821fa340635ebfec5bba471013f9ca114579 AS build
ARG EXTRAS=""
WORKDIR /source
COPY pyproject.toml hatch_build.py README.md LICENSE constraints.txt ./
COPY src ./src
COPY samples ./samples
RUN python -m venv /opt/inferometer \
    && /opt/inferometer/bin/pip install --no-cache-dir --disable-pip-version-check --constraint constraints.txt \
        ".${EXTRAS:+[$EXTRAS]}"

FROM python:3.12.14-slim-bookworm@sha256:0f5b26b9518d002b6173fd61daad821fa340635ebfec5bba471013f9ca114579
COPY --from=build /opt/inferometer /opt/inferometer
RUN useradd --create-home --uid 1000 inferometer
ENV PATH=/opt/inferometer/bin:$PATH
USER inferometer
WORKDIR /work
ENTRYPOINT ["inferometer"]
CMD ["--help"]
