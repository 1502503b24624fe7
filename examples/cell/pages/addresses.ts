/** The public addresses, whose last part is a name that the router looks up. */

export const profilePath = (handle: string): string => `/${encodeURIComponent(handle)}`;

export const storePath = (store: string): string => `/stores/${encodeURIComponent(store)}`;
