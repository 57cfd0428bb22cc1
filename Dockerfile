# A server with everything it needs, as nobody in particular; its data is one volume. docs/deployment.md says how to use it.
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE NOTICE ./
COPY src ./src
RUN python -m venv /opt/commonplace
RUN /opt/commonplace/bin/python -m pip install --no-cache-dir --prefer-binary --disable-pip-version-check -c constraints.txt ".[fast,oidc,postgresql]"
# What only installs and compiles is not needed to serve.
RUN /opt/commonplace/bin/python -m pip uninstall --yes pip

FROM python:3.13-slim
COPY --from=build /opt/commonplace /opt/commonplace
COPY deploy/healthcheck.py /opt/commonplace/healthcheck.py
# Numbers, so that `runAsNonRoot` can see that it is not root and a volume's owner is the same everywhere.
RUN install -d -o 10001 -g 10001 -m 0700 /data
ENV PATH=/opt/commonplace/bin:/usr/local/bin:/usr/bin:/bin
ENV PYTHONUNBUFFERED=1
ENV PYTHONDONTWRITEBYTECODE=1
ENV HOME=/data
ENV COMMONPLACE_DATA=/data
ENV COMMONPLACE_HOST=0.0.0.0
USER 10001:10001
WORKDIR /data
VOLUME ["/data"]
EXPOSE 8420
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["python", "/opt/commonplace/healthcheck.py"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["commonplace"]
CMD ["serve"]
