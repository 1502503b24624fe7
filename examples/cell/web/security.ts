import { createMiddleware } from "hono/factory";
import type { Hono, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { csrf } from "hono/csrf";
import { HTTPException } from "hono/http-exception";
import { secureHeaders } from "hono/secure-headers";
import { hostNames } from "./local.ts";

/** The forms have only a few short fields. */
const MAX_BODY_BYTES = 16_384;

const tooLarge = (): never => {
  throw new HTTPException(413);
};

/**
 * Refuses other host names, so that another site cannot point its own name at this machine (DNS rebinding).
 */
const localNamesOnly: MiddlewareHandler = createMiddleware(async (context, next) => {
  const { hostname } = new URL(context.req.url);
  if (!hostNames.includes(hostname)) throw new HTTPException(421);
  await next();
});

/** Pages load only their own files, have no inline scripts or styles, and cannot be framed. */
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
  // The check of a form's origin needs this.
  referrerPolicy: "same-origin",
  // The example does not use TLS.
  strictTransportSecurity: false,
});

/** Protects all routes of an app. Only forms from `origins` are accepted. */
export function secure(app: Hono, origins: readonly string[]): void {
  app.use(
    headers,
    localNamesOnly,
    csrf({ origin: [...origins] }),
    bodyLimit({ maxSize: MAX_BODY_BYTES, onError: tooLarge }),
  );
}
