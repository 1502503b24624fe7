import { createMiddleware } from "hono/factory";
import type { Hono, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { csrf } from "hono/csrf";
import { HTTPException } from "hono/http-exception";
import { secureHeaders } from "hono/secure-headers";
import { hostNames } from "./local.ts";

/** Forms with a few fields. */
const MAX_BODY_BYTES = 16_384;

const tooLarge = (): never => {
  throw new HTTPException(413);
};

/** Another site that gives its own name this machine's address (DNS rebinding) is not served. */
const localNamesOnly: MiddlewareHandler = createMiddleware(async (context, next) => {
  const { hostname } = new URL(context.req.url);
  if (!hostNames.includes(hostname)) throw new HTTPException(421);
  await next();
});

/** Everything comes from here: no inline script or style, nothing from elsewhere, and no frame around it. */
const headers = secureHeaders({
  contentSecurityPolicy: {
    defaultSrc: ["'none'"],
    styleSrc: ["'self'"],
    scriptSrc: ["'self'"],
    imgSrc: ["'self'"],
    connectSrc: ["'self'"],
    formAction: ["'self'"],
    frameAncestors: ["'none'"],
    baseUri: ["'none'"],
  },
  // The browser must still tell where a form came from.
  referrerPolicy: "same-origin",
  // There is no TLS here.
  strictTransportSecurity: false,
});

/** For every answer of an app. Forms are taken from `origins` only. */
export function secure(app: Hono, origins: readonly string[]): void {
  app.use(
    headers,
    localNamesOnly,
    csrf({ origin: [...origins] }),
    bodyLimit({ maxSize: MAX_BODY_BYTES, onError: tooLarge }),
  );
}
