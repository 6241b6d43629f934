import { render } from "preact";
import { App } from "./app";
import { followLinks } from "./router";
import { findOutWhoIAm } from "./state/session";

document.addEventListener("click", followLinks);
void findOutWhoIAm();
render(<App />, document.getElementById("page") as HTMLElement);
