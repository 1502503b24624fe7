import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Hono } from "hono";

const types = {
  "style.css": "text/css",
  "enhance.js": "text/javascript",
  "icon.svg": "image/svg+xml",
} as const;
type Name = keyof typeof types;

const names = Object.keys(types) as Name[];
const texts = new Map(
  names.map((name) => [name, readFileSync(join(import.meta.dirname, "assets", name), "utf8")]),
);

/** The address contains a hash of the content, so browsers may cache it forever. */
const versions = new Map(
  [...texts].map(([name, text]) => [name, createHash("sha256").update(text).digest("hex").slice(0, 12)]),
);

export const assetPath = (name: Name): string => `/-/assets/${name}?${versions.get(name)}`;

export function serveAssets(app: Hono): void {
  for (const name of names) {
    app.get(`/-/assets/${name}`, (context) =>
      context.body(texts.get(name) ?? "", 200, {
        "content-type": `${types[name]}; charset=utf-8`,
        "cache-control": "public, max-age=31536000, immutable",
      }),
    );
  }
}
