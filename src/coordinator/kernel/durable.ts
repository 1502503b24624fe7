import type { Ports } from "./ports.ts";
import type { Result } from "./refusal.ts";

/** Answers when the rows are durable that the answer was read from (B5, C2). */
export async function durable<T>(
  { ports }: { readonly ports: Pick<Ports, "sql"> },
  reply: Result<T>,
): Promise<Result<T>> {
  await ports.sql.flush();
  return reply;
}
