/** Runs the checks of the router in workerd. Answers what they have checked. */
import { checkRouter, type Routed } from "./router-checks.ts";

export default {
  async fetch(_: Request, { ROUTED }: { ROUTED: Routed }): Promise<Response> {
    try {
      const checked = await checkRouter(ROUTED, (proxy) => ({
        send: (path, init) => proxy(new Request(`http://www.example.com${path}`, init)),
        stop: () => Promise.resolve(),
      }));
      return new Response(checked);
    } catch (error) {
      return new Response(error instanceof Error ? (error.stack ?? error.message) : String(error), {
        status: 500,
      });
    }
  },
};
