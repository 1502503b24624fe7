# The standalone server. docs/operating/standalone.md says how to run it.
FROM node:24-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm install --ignore-scripts && npm rebuild esbuild
COPY . .
RUN npm run build:standalone

FROM node:24-slim
WORKDIR /app
COPY --from=build /build/dist/standalone/*.mjs ./
RUN mkdir /state && chown node:node /state && chmod 700 /state
USER node
ENV LEASEHOLD_STATE=/state/leasehold PORT=8787
VOLUME /state
EXPOSE 8787
# A failed fetch ends with status 1 as well.
HEALTHCHECK CMD ["node", "-e", \
  "fetch(`http://127.0.0.1:${process.env.PORT}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1))"]
ENTRYPOINT ["node", "main.mjs"]
CMD ["--host", "0.0.0.0"]
