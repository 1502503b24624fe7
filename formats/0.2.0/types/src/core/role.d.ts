export type Role = "cell" | "router" | "operator" | "viewer" | "scraper" | "bridge";
