# The image of docs/deployment.md: the program and its runtime dependencies, without build tools.
FROM node:24.21.0-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
# No package of the program runs a script when it is installed.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/build ./scripts/build
COPY src ./src
RUN npm run build && npm prune --omit=dev --ignore-scripts --no-audit --no-fund

FROM node:24.21.0-bookworm-slim
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=3000 \
    DASH_DATA_DIR=/data
RUN install -d -o node -g node -m 0700 /data
WORKDIR /opt/dash
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/dist ./dist
COPY --from=build /build/dist-page ./dist-page
COPY package.json README.md CHANGELOG.md CONTRIBUTING.md LICENSE ./
COPY bench/README.md ./bench/README.md
COPY assets ./assets
COPY docs ./docs
COPY migrations ./migrations
COPY ops ./ops
USER node
WORKDIR /data
VOLUME ["/data"]
EXPOSE 3000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s --retries=3 \
  CMD ["/usr/local/bin/node", "-e", "fetch('http://127.0.0.1:3000/readyz').then(({ ok }) => process.exit(ok ? 0 : 1))"]
# Absolute paths: in this image the command dash is the system shell.
ENTRYPOINT ["/usr/local/bin/node", "/opt/dash/dist/cli/main.js"]
CMD ["serve"]
