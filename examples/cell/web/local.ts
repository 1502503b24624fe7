/** The example listens on this address only. */
export const HOST = "127.0.0.1";

/** The host names that a browser may use for it. */
export const hostNames = [HOST, "localhost"];

export const originsOf = (port: number): string[] => hostNames.map((name) => `http://${name}:${port}`);
