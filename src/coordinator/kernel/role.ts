/**
 * What a caller may do. A `viewer` may read what operators may read, and change nothing. A `scraper` may only
 * read metrics. A `bridge` may do nothing itself: it passes on the calls of others, with their certificates.
 */
export type Role = "cell" | "router" | "operator" | "viewer" | "scraper" | "bridge";
