export { verificationHandlers as handlers } from "./handlers.ts";
export { verificationRoutes as routes } from "./routes.ts";
