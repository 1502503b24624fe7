import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export interface Served {
  url: string;
  server: Server;
}

/** Serves a request listener on a free port of this machine. */
export async function serve(listener: RequestListener): Promise<Served> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

/** Serves what answers with the classes of the Fetch API. Bodies are short. */
export const serveFetch = (answer: (path: string, init: RequestInit) => Promise<Response>): Promise<Served> =>
  serve((request, response) => {
    const respond = async (): Promise<void> => {
      const { method = "GET", url = "/" } = request;
      const body = await bodyOf(request);
      const headers = new Headers(request.headers as Record<string, string>);
      const answered = await answer(
        url,
        body === undefined ? { method, headers } : { method, headers, body },
      );
      response.writeHead(answered.status, Object.fromEntries(answered.headers));
      response.end(Buffer.from(await answered.arrayBuffer()));
    };
    respond().catch((error: unknown) => response.destroy(error as Error));
  });

async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += String(chunk);
  return text === "" ? undefined : text;
}
