/**
 * Measures the minimum cost of a request on this runtime: an answer, one call to an object, and one call with
 * one durable write.
 */
import { DurableObject } from "cloudflare:workers";

interface Env {
  OBJECT: DurableObjectNamespace<Ceiling>;
  /** The number of objects, equal to Leasehold's number of shards. */
  OBJECTS: string;
}

export class Ceiling extends DurableObject {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS item (id INTEGER PRIMARY KEY, value TEXT NOT NULL)");
  }

  answer(text: string): { length: number } {
    return { length: text.length };
  }

  write(text: string): { length: number } {
    this.ctx.storage.transactionSync(() =>
      this.ctx.storage.sql.exec("INSERT INTO item (value) VALUES (?)", text),
    );
    return { length: text.length };
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname } = new URL(request.url);
    const [, kind] = pathname.split("/");
    const text = await request.text();
    const status = request.method === "PUT" ? 201 : 200;
    if (kind === "answer") return Response.json({ length: text.length }, { status });
    // Requests are spread over the objects as names are over shards.
    let hash = 7;
    for (let index = 0; index < pathname.length; index += 1)
      hash = (Math.imul(hash, 31) + pathname.charCodeAt(index)) | 0;
    const object = env.OBJECT.getByName(String(Math.abs(hash) % Number(env.OBJECTS)));
    return Response.json(await (kind === "write" ? object.write(text) : object.answer(text)), { status });
  },
};
