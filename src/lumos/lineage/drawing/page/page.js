"use strict";
(() => {
  const picture = JSON.parse(document.getElementById("picture").textContent);
  const boxes = picture.boxes || [], arrows = picture.arrows || [];
  const byUrn = new Map(boxes.map(box => [box.urn, box]));
  const svg = document.getElementById("canvas"), view = document.getElementById("view");
  const panel = document.getElementById("panel");
  const NS = "http://www.w3.org/2000/svg";

  const make = (name, facts = {}, parent = null, text = null) => {
    const node = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(facts)) node.setAttribute(key, value);
    if (text !== null) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  };
  const html = (name, text, parent, kind = "") => {
    const node = document.createElement(name);
    if (text !== null) node.textContent = text;
    if (kind) node.className = kind;
    parent.append(node);
    return node;
  };
  // Fonts differ from screen to screen, so what fits is measured.
  const fitted = (node, part, room) => {
    const text = part.textContent, length = node.getComputedTextLength();
    if (length > room) part.textContent = text.slice(0, Math.max(1, Math.floor(text.length - (length - room) / length * node.textContent.length) - 1)) + "\u2026";
  };
  const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

  const defs = svg.querySelector("defs");
  const marker = make("marker", { id: "tip", viewBox: "0 0 10 10", refX: 9, refY: 5,
    markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto-start-reverse" }, defs);
  make("path", { d: "M0 0 L10 5 L0 10 z" }, marker);

  // A column's height in its box; folded ones share the last row.
  const rowOf = (box, column) => {
    const columns = box.columns || [];
    const place = columns.indexOf(column);
    if (place < 0) return box.y + picture.head / 2;
    const shown = columns.length > picture.most ? Math.min(place, picture.most) : place;
    return box.y + picture.head + shown * picture.row + picture.row / 2;
  };
  const curve = (x1, y1, x2, y2) => {
    if (x2 > x1) {
      const bend = Math.max(40, (x2 - x1) / 2);
      return `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
    }
    const dip = Math.max(y1, y2) + 70;
    return `M${x1} ${y1} C${x1 + 90} ${dip} ${x2 - 90} ${dip} ${x2} ${y2}`;
  };

  const lines = [];
  const drawn = document.getElementById("arrows");
  const draw = (arrow, from, to, kind) => {
    const a = byUrn.get(arrow.upstream), b = byUrn.get(arrow.downstream);
    if (!a || !b) return;
    const y1 = from === null ? a.y + picture.head / 2 : rowOf(a, from);
    const y2 = to === null ? b.y + picture.head / 2 : rowOf(b, to);
    const isMarked = from === null || !(arrow.marked || []).length || arrow.marked.includes(from);
    const path = make("path", { d: curve(a.x + a.w, y1, b.x, y2), "marker-end": "url(#tip)",
      class: `arrow ${(arrow.type || "TRANSFORMED").toLowerCase()} ${kind} ${isMarked && arrow.mark || ""}` }, drawn);
    lines.push({ path, arrow, from, to });
  };
  for (const arrow of arrows) {
    const a = byUrn.get(arrow.upstream), b = byUrn.get(arrow.downstream);
    if (!a || !b) continue;
    const between = (arrow.columns || []).filter(each =>
      (a.columns || []).includes(each.upstream) && (b.columns || []).includes(each.downstream));
    const uses = new Map();
    for (const use of arrow.uses || []) uses.set(`${use.upstream}\n${use.downstream ?? ""}`, use);
    if (!between.length && !picture.column) draw(arrow, null, null, "");
    for (const each of between) draw(arrow, each.upstream, each.downstream, "");
    if (picture.column || between.length) {
      for (const use of uses.values()) {
        if ((a.columns || []).includes(use.upstream)) draw(arrow, use.upstream, use.downstream ?? null, "indirect");
      }
    }
  }

  const frames = new Map(), rows = new Map();
  const key = (urn, column) => `${urn}\n${column}`;
  const verdictOf = impact => impact.verdict
    ? impact.affected === false ? "NOT AFFECTED" : impact.verdict.toUpperCase() : "CHANGES";
  const drawBox = box => {
    const state = box.state === "" || box.state === undefined ? "unknown" : box.state === "live" ? "" : "gone";
    const word = box.impact && (box.mark || box.impact.changes) ? verdictOf(box.impact) : "";
    const group = make("g", { class: `box ${box.urn === picture.urn ? "focus" : ""} ${state} ${box.mark || ""}`,
      transform: `translate(${box.x} ${box.y})`, tabindex: 0, role: "button",
      "aria-label": [box.name, word].filter(Boolean).join(", ") }, document.getElementById("boxes"));
    make("title", {}, group, box.urn);
    make("rect", { class: "frame", width: box.w, height: box.h, rx: 8 }, group);
    const name = make("text", { class: "name", x: 12, y: 20 }, group, box.name);
    fitted(name, name, box.w - 24);
    const owners = (box.owners || []).join(", ");
    const note = state === "unknown" ? "not scanned" : state === "gone" ? "gone" : "";
    const line = make("text", { class: "dim", x: 12, y: 37 }, group);
    if (word) make("tspan", { class: "word" }, line, word);
    const facts = [box.platform, owners, note].filter(Boolean).join(" \u00b7 ");
    fitted(line, make("tspan", {}, line, word ? ` \u00b7 ${facts}` : facts), box.w - 24);
    const columns = box.columns || [];
    const shown = columns.length > picture.most ? columns.slice(0, picture.most) : columns;
    shown.forEach((column, number) => {
      const row = make("g", { class: "column", transform: `translate(0 ${picture.head + number * picture.row})` }, group);
      make("rect", { x: 2, width: box.w - 4, height: picture.row, rx: 4 }, row);
      const label = make("text", { x: 16, y: 14 }, row, column);
      fitted(label, label, box.w - 28);
      rows.set(key(box.urn, column), row);
      row.addEventListener("click", event => { if (!moved) { event.stopPropagation(); follow(box.urn, column); } });
    });
    if (columns.length > shown.length) {
      make("text", { class: "dim", x: 16, y: picture.head + shown.length * picture.row + 14 }, group,
        `and ${columns.length - shown.length} more`);
    }
    group.addEventListener("click", event => { if (!moved) { event.stopPropagation(); follow(box.urn, null); } });
    group.addEventListener("keydown", event => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      follow(box.urn, null);
    });
    // Whoever moves by keyboard sees where they are.
    group.addEventListener("focus", () => { if (group.matches(":focus-visible")) reveal(box); });
    frames.set(box.urn, group);
  };
  boxes.forEach(drawBox);

  // What lies before and after a dataset or a column.
  const reach = (urn, column, direction) => {
    const seen = new Set([column === null ? urn : key(urn, column)]), found = new Set(), waiting = [[urn, column]];
    while (waiting.length) {
      const [at, of] = waiting.pop();
      for (const line of lines) {
        const { arrow, from, to } = line;
        const [near, nearColumn, far, farColumn] = direction === "down"
          ? [arrow.upstream, from, arrow.downstream, to] : [arrow.downstream, to, arrow.upstream, from];
        if (near !== at || (of !== null && nearColumn !== of && nearColumn !== null)) continue;
        if (of !== null && nearColumn === null && direction === "down") continue;
        found.add(line);
        const next = of === null ? far : farColumn === null ? null : key(far, farColumn);
        if (next !== null && !seen.has(next)) {
          seen.add(next);
          waiting.push([far, of === null ? null : farColumn]);
        }
      }
    }
    return found;
  };

  let chosen = null, home = null;
  const unmark = () => {
    for (const node of [...frames.values(), ...lines.map(line => line.path)]) node.classList.remove("dull", "up", "down", "chosen");
    for (const row of rows.values()) row.classList.remove("lit");
  };
  const letGo = () => {
    chosen = null;
    unmark();
    panel.hidden = true;
    // Back to where it was before the panel took its room, unless somebody moved since.
    if (home && home.left === left && home.top === top) [left, top] = home.before;
    home = null;
    apply();
  };
  const follow = (urn, column) => {
    unmark();
    chosen = [byUrn.get(urn), column];
    frames.get(urn).classList.add("chosen");
    const up = reach(urn, column, "up"), down = reach(urn, column, "down");
    const near = new Set([urn]);
    const light = (end, of) => { near.add(end); rows.get(key(end, of))?.classList.add("lit"); };
    for (const line of lines) {
      const isUp = up.has(line), isDown = down.has(line);
      line.path.classList.toggle("up", isUp);
      line.path.classList.toggle("down", isDown && !isUp);
      line.path.classList.toggle("dull", !isUp && !isDown);
      if (isUp || isDown) {
        if (column === null) { near.add(line.arrow.upstream); near.add(line.arrow.downstream); }
        else { light(line.arrow.upstream, line.from); light(line.arrow.downstream, line.to); }
      }
    }
    if (column !== null) rows.get(key(urn, column))?.classList.add("lit");
    for (const [each, frame] of frames) frame.classList.toggle("dull", !near.has(each));
    tell(byUrn.get(urn), column);
    const before = home && home.left === left && home.top === top ? home.before : [left, top];
    reveal(...chosen);
    home = { before, left, top };
  };

  const place = each => each.file ? `${each.file}${each.line ? ":" + each.line : ""}` : "";
  const tellImpact = impact => {
    html("p", verdictOf(impact), panel, `verdict ${impact.affected === false ? "" : impact.verdict || "focus"}`);
    const listed = (title, items, add) => {
      if (!(items || []).length) return;
      html("h3", title, panel);
      const list = html("ul", null, panel);
      for (const each of items.slice(0, 60)) add(each, html("li", null, list));
      if (items.length > 60) html("li", `and ${items.length - 60} more`, list, "dim");
    };
    const plain = (each, item) => { item.textContent = each; };
    listed("Change", impact.changes, plain);
    listed(impact.reasons && impact.reasons.length > 1 ? "Reasons" : "Reason", impact.reasons, (each, item) => {
      html("span", each.text, item, each.verdict);
      if (each.clause && each.clause !== "*") html("pre", each.clause, item);
      if (each.where) html("p", each.where, item, "where");
      if ((each.path || []).length > 1) html("p", `via ${each.path.join(" \u2192 ")}`, item, "dim");
    });
    listed("Columns that change", impact.columns, plain);
    listed("Recommendations", impact.recommendations, plain);
  };
  const tell = (box, column) => {
    panel.replaceChildren();
    panel.hidden = false;
    panel.scrollTop = 0;
    const close = html("button", "\u00d7", panel, "close");
    close.setAttribute("aria-label", "Close");
    close.onclick = leave;
    html("h2", column === null ? box.name : `${box.name}.${column}`, panel);
    html("p", box.urn, panel, "dim");
    const owners = (box.owners || []).join(", ");
    if (owners || box.impact) html("p", `Owner: ${owners || "no owner is known"}`, panel);
    if (!box.state) html("p", "Known from lineage only, not scanned.", panel, "dim");
    else if (box.state !== "live") html("p", "No longer exists.", panel, "dim");
    if (box.impact) tellImpact(box.impact);
    const section = (title, mine, other) => {
      const found = arrows.filter(arrow => arrow[mine] === box.urn);
      if (!found.length) return;
      html("h3", title, panel);
      const list = html("ul", null, panel);
      for (const arrow of found) {
        const columns = (arrow.columns || []).filter(each => column === null || each[mine] === column);
        const uses = (arrow.uses || []).filter(each => column === null || each[mine] === column || (mine === "downstream" && !each.downstream));
        if (column !== null && !columns.length && !uses.length) continue;
        const item = html("li", null, list);
        html("strong", byUrn.get(arrow[other])?.name ?? arrow[other], item);
        const facts = [(arrow.type || "TRANSFORMED").toLowerCase(), ...(arrow.origins || []), ...(arrow.jobs || [])];
        html("span", ` ${facts.join(" \u00b7 ")}`, item, "dim");
        const inner = html("ul", null, item);
        for (const each of columns.slice(0, 60)) {
          const row = html("li", null, inner);
          html("code", `${each.upstream} \u2192 ${each.downstream}`, row);
          const more = [each.transformation && each.transformation !== each.upstream ? each.transformation : "", place(each)].filter(Boolean);
          if (more.length) html("span", ` ${more.join(" \u00b7 ")}`, row, "dim");
        }
        if (columns.length > 60) html("li", `and ${columns.length - 60} more columns`, inner, "dim");
        for (const each of uses.slice(0, 60)) {
          const row = html("li", null, inner);
          html("code", `${each.usage}: ${each.upstream}`, row);
          const more = [each.expression, place(each)].filter(Boolean);
          if (more.length) html("span", ` ${more.join(" \u00b7 ")}`, row, "dim");
        }
      }
    };
    section("Upstream", "downstream", "upstream");
    section("Downstream", "upstream", "downstream");
  };

  // Pan and zoom.
  let scale = 1, left = 0, top = 0, moved = false, held = null;
  const apply = () => view.setAttribute("transform", `translate(${left} ${top}) scale(${scale})`);
  const zoom = (factor, x, y) => {
    const next = Math.min(4, Math.max(0.03, scale * factor));
    left = x - (x - left) * next / scale;
    top = y - (y - top) * next / scale;
    scale = next;
    apply();
  };
  // Moves as little as it takes to show a dataset, or one of its columns, beside the panel.
  const reveal = (box, column = null) => {
    const area = svg.getBoundingClientRect(), space = 16;
    const isRow = column !== null && rows.has(key(box.urn, column));
    const y = isRow ? rowOf(box, column) - picture.row / 2 : box.y, h = isRow ? picture.row : box.h;
    const shift = (start, size, room) => start < space || size > room - 2 * space ? space - start
      : Math.min(0, room - space - start - size);
    left += shift(left + box.x * scale, box.w * scale, area.width);
    top += shift(top + y * scale, h * scale, area.height);
    apply();
  };
  const fit = () => {
    if (!boxes.length) return;
    const area = svg.getBoundingClientRect();
    const x1 = Math.min(...boxes.map(b => b.x)), x2 = Math.max(...boxes.map(b => b.x + b.w));
    const y1 = Math.min(...boxes.map(b => b.y)), y2 = Math.max(...boxes.map(b => b.y + b.h));
    scale = Math.min(1.25, 0.94 * Math.min(area.width / (x2 - x1), area.height / (y2 - y1)));
    left = (area.width - (x1 + x2) * scale) / 2;
    top = (area.height - (y1 + y2) * scale) / 2;
    apply();
  };
  const middle = () => { const area = svg.getBoundingClientRect(); return [area.width / 2, area.height / 2]; };
  svg.addEventListener("wheel", event => {
    event.preventDefault();
    const area = svg.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 500), event.clientX - area.left, event.clientY - area.top);
  }, { passive: false });
  svg.addEventListener("pointerdown", event => { held = [event.clientX, event.clientY]; moved = false; });
  addEventListener("pointermove", event => {
    if (!held) return;
    const dx = event.clientX - held[0], dy = event.clientY - held[1];
    if (!moved && Math.abs(dx) + Math.abs(dy) < 4) return;
    moved = true;
    svg.classList.add("moving");
    left += dx; top += dy;
    held = [event.clientX, event.clientY];
    apply();
  });
  addEventListener("pointerup", () => { held = null; svg.classList.remove("moving"); });
  // Too many to be read at once are shown from the dataset in question on.
  const start = () => {
    fit();
    if (!boxes.length || scale >= 0.4) return;
    const area = svg.getBoundingClientRect(), box = byUrn.get(picture.urn) || boxes[0];
    scale = 0.8;
    left = Math.min(area.width / 2 - (box.x + box.w / 2) * scale, 30 - Math.min(...boxes.map(b => b.x)) * scale);
    top = area.height / 2 - (box.y + box.h / 2) * scale;
    apply();
  };
  const leave = () => {
    const frame = chosen && frames.get(chosen[0].urn);
    letGo();
    if (frame) frame.focus({ preventScroll: true });
  };
  svg.addEventListener("click", () => { if (!moved) letGo(); });
  addEventListener("keydown", event => { if (event.key === "Escape" && chosen) leave(); });
  addEventListener("resize", () => { if (chosen) reveal(...chosen); else start(); });
  document.getElementById("in").onclick = () => zoom(1.3, ...middle());
  document.getElementById("out").onclick = () => zoom(1 / 1.3, ...middle());
  document.getElementById("fit").onclick = fit;
  // Typing shows the first match, Enter the next one.
  let matches = [], match = 0;
  const find = document.getElementById("find");
  const step = () => {
    if (!matches.length) { letGo(); return; }
    follow(...matches[match++ % matches.length]);
  };
  find.addEventListener("input", () => {
    const wanted = find.value.trim().toLowerCase(), has = text => text.toLowerCase().includes(wanted);
    matches = wanted ? boxes.filter(box => has(box.name) || has(box.urn)).map(box => [box.urn, null]) : [];
    if (wanted && !matches.length) {
      matches = boxes.flatMap(box => (box.columns || []).filter(has).map(column => [box.urn, column]));
    }
    match = 0;
    step();
  });
  find.addEventListener("keydown", event => { if (event.key === "Enter") step(); });
  document.getElementById("sum").textContent = `${plural(boxes.length, "dataset")}, ${plural(arrows.length, "edge")}`
    + (picture.truncated ? ` \u00b7 ${picture.total} within reach, the nearest are shown` : "")
    + ((picture.cycles || []).length ? ` \u00b7 ${plural(picture.cycles.length, "cycle")}` : "");
  for (const mark of ["breaking", "undetermined", "compatible"]) {
    const marked = boxes.filter(box => box.mark === mark), button = document.querySelector(`button.${mark}`);
    let next = 0;
    button.hidden = !marked.length;
    button.textContent = `${marked.length} ${mark}`;
    button.title = `Show the next ${mark} dataset`;
    button.onclick = () => follow(marked[next++ % marked.length].urn, null);
  }
  start();
  if (picture.column) follow(picture.urn, picture.column);
})();
