/** The page as a static site: the same pages, answered from files. */
import { createHashHistory } from "@tanstack/react-router";
import { answerFromSite } from "../api/client";
import { start } from "../app";
import { answerer } from "./answers";
import { scriptLoader } from "./shards";

const meta = (name: string) => document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? "";

answerFromSite(answerer(scriptLoader(meta("lumos-data"))), meta("lumos-as-of"));
start(createHashHistory());
