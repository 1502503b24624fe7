/** The only address that anything here listens on. */
export const HOST = "127.0.0.1";

/** What a browser may call it. */
export const hostNames = [HOST, "localhost"];

export const originsOf = (port: number): string[] => hostNames.map((name) => `http://${name}:${port}`);
