/** Starts the page in a document. */
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider, type RouterHistory } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "./api/client";
import { makeRouter } from "./routes";
import "./style.css";
import { applyTheme, currentTheme } from "./ui/theme";

/** Show the page; the result ends it. */
export function start(history?: RouterHistory): () => void {
  applyTheme(currentTheme());
  const queries = new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 30_000,
        refetchOnWindowFocus: false,
        // An invalid request would fail again; only failures of the server are worth a retry.
        retry: (failures, error) => failures < 2 && !(error instanceof ApiError && error.status >= 400 && error.status < 500),
      },
    },
  });
  const root = document.getElementById("root");
  if (root === null) return () => undefined;
  const page = createRoot(root);
  page.render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <RouterProvider router={makeRouter(history)} />
      </QueryClientProvider>
    </StrictMode>,
  );
  return () => { page.unmount(); };
}
