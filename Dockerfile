# The annotation server. The install is the one that `make extras` tries: an empty Python, the extra annotate, pinned versions.
FROM python:3.11-slim

COPY pyproject.toml constraints.txt README.md LICENSE /build/
COPY src /build/src
RUN python -m pip install --no-cache-dir -c /build/constraints.txt "/build[annotate]" \
    && rm -r /build \
    && useradd --create-home shortlist \
    && install -d -o shortlist /home/shortlist/project

USER shortlist
WORKDIR /home/shortlist
EXPOSE 8080
ENTRYPOINT ["shortlist"]
CMD ["--help"]
