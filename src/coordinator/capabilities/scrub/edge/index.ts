export { scrubHandlers as handlers } from "./handlers.ts";
export { scrubRoutes as routes } from "./routes.ts";
