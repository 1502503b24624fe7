import type { PoolClient } from "pg";

interface Wired {
  query: (...args: unknown[]) => unknown;
  connection: { stream: { destroy: () => void } };
}

/**
 * Cuts some connections right after COMMIT was written, so the change is saved and the answer is lost. A
 * killed server undoes most such transactions, so kills alone would hardly ever produce this case.
 */
export const loseAnswers =
  (isLost: () => boolean) =>
  (client: PoolClient): void => {
    const wired = client as unknown as Wired;
    const query = wired.query.bind(client);
    wired.query = (...args) => {
      const answer = query(...args);
      if (textOf(args[0]) === "commit" && isLost()) setImmediate(() => wired.connection.stream.destroy());
      return answer;
    };
  };

const textOf = (query: unknown): unknown =>
  typeof query === "object" && query !== null && "text" in query ? query.text : query;
