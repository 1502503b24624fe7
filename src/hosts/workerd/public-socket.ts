/**
 * The socket that callers reach, as a plugin of Miniflare. It leads directly to the Worker and knows no
 * special headers or hosts. Miniflare's own sockets don't suit callers from outside: its entry Worker lets a
 * header replace the URL of a request, and its direct sockets let a CONNECT call the cron without a key.
 */
import type { Plugin } from "miniflare";

const PLUGIN = "leasehold-public-socket";
/** The binding that makes Miniflare load the plugin. The Worker doesn't use it. */
const BINDING = "PUBLIC_SOCKET";

interface PublicSocket {
  unsafeBindings: {
    name: string;
    type: string;
    plugin: { package: string; name: string };
    options: { address: string };
  }[];
}

/** The options of a Miniflare Worker that is reached at `address`. */
export const publicSocketAt = (address: string): PublicSocket => ({
  unsafeBindings: [
    {
      name: BINDING,
      type: "socket",
      plugin: { package: import.meta.filename, name: PLUGIN },
      options: { address },
    },
  ],
});

const plugin: Plugin = {
  getBindings: () => {},
  getNodeBindings: () => ({}),
  getServices: ({ options: { config } }) => {
    const binding = config.env?.[BINDING] as { dev: PublicSocket["unsafeBindings"][number] } | undefined;
    if (binding === undefined) return;
    const { address } = binding.dev.options;
    const service = { name: `core:user:${config.name}` };
    return { services: [], extensions: [], sockets: [{ name: PLUGIN, address, service, http: {} }] };
  },
};

/** Miniflare looks for this export. */
export const plugins: Record<string, Plugin> = { [PLUGIN]: plugin };
