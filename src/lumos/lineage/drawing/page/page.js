"use strict";
(() => {
  const picture = JSON.parse(document.getElementById("picture").textContent);
  const boxes = picture.boxes || [], arrows = picture.arrows || [];
  const byUrn = new Map(boxes.map(box => [box.urn, box]));
  const svg = document.getElementById("canvas"), view = document.getElementById("view");
  const panel = document.getElementById("panel");
  const NS = "http://www.w3.org/2000/svg";

  const createSvg = (name, attributes = {}, parent = null, text = null) => {
    const node = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== null) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  };
  const createHtml = (name, text, parent, className = "") => {
    const node = document.createElement(name);
    if (text !== null) node.textContent = text;
    if (className) node.className = className;
    parent.append(node);
    return node;
  };
  // The text length is measured, since fonts differ between screens.
  const truncateToFit = (node, part, room) => {
    const text = part.textContent, length = node.getComputedTextLength();
    if (length > room) part.textContent = text.slice(0, Math.max(1, Math.floor(text.length - (length - room) / length * node.textContent.length) - 1)) + "\u2026";
  };
  const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

  const defs = svg.querySelector("defs");
  const marker = createSvg("marker", { id: "tip", viewBox: "0 0 10 10", refX: 9, refY: 5,
    markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto-start-reverse" }, defs);
  createSvg("path", { d: "M0 0 L10 5 L0 10 z" }, marker);

  // The vertical centre of a column's row; columns beyond the maximum share the last row.
  const rowY = (box, column) => {
    const columns = box.columns || [];
    const index = columns.indexOf(column);
    if (index < 0) return box.y + picture.headerHeight / 2;
    const row = columns.length > picture.maxColumns ? Math.min(index, picture.maxColumns) : index;
    return box.y + picture.headerHeight + row * picture.rowHeight + picture.rowHeight / 2;
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
  const arrowGroup = document.getElementById("arrows");
  const drawLine = (arrow, from, to, className) => {
    const a = byUrn.get(arrow.upstream), b = byUrn.get(arrow.downstream);
    if (!a || !b) return;
    const y1 = from === null ? a.y + picture.headerHeight / 2 : rowY(a, from);
    const y2 = to === null ? b.y + picture.headerHeight / 2 : rowY(b, to);
    const isMarked = from === null || !(arrow.marked || []).length || arrow.marked.includes(from);
    const path = createSvg("path", { d: curve(a.x + a.w, y1, b.x, y2), "marker-end": "url(#tip)",
      class: `arrow ${(arrow.type || "TRANSFORMED").toLowerCase()} ${className} ${isMarked && arrow.mark || ""}` }, arrowGroup);
    lines.push({ path, arrow, from, to });
  };
  for (const arrow of arrows) {
    const a = byUrn.get(arrow.upstream), b = byUrn.get(arrow.downstream);
    if (!a || !b) continue;
    const between = (arrow.columns || []).filter(each =>
      (a.columns || []).includes(each.upstream) && (b.columns || []).includes(each.downstream));
    const uses = new Map();
    for (const use of arrow.uses || []) uses.set(`${use.upstream}\n${use.downstream ?? ""}`, use);
    if (!between.length && !picture.column) drawLine(arrow, null, null, "");
    for (const each of between) drawLine(arrow, each.upstream, each.downstream, "");
    if (picture.column || between.length) {
      for (const use of uses.values()) {
        if ((a.columns || []).includes(use.upstream)) drawLine(arrow, use.upstream, use.downstream ?? null, "indirect");
      }
    }
  }

  const frames = new Map(), rows = new Map();
  const key = (urn, column) => `${urn}\n${column}`;
  const verdictText = impact => impact.verdict
    ? impact.affected === false ? "NOT AFFECTED" : impact.verdict.toUpperCase() : "CHANGES";
  const drawBox = box => {
    const state = box.state === "" || box.state === undefined ? "unknown" : box.state === "live" ? "" : "gone";
    const verdict = box.impact && (box.mark || box.impact.changes) ? verdictText(box.impact) : "";
    const group = createSvg("g", { class: `box ${box.urn === picture.urn ? "focus" : ""} ${state} ${box.mark || ""}`,
      transform: `translate(${box.x} ${box.y})`, tabindex: 0, role: "button",
      "aria-label": [box.name, verdict].filter(Boolean).join(", ") }, document.getElementById("boxes"));
    createSvg("title", {}, group, box.urn);
    createSvg("rect", { class: "frame", width: box.w, height: box.h, rx: 8 }, group);
    const name = createSvg("text", { class: "name", x: 12, y: 20 }, group, box.name);
    truncateToFit(name, name, box.w - 24);
    const owners = (box.owners || []).join(", ");
    const note = state === "unknown" ? "not scanned" : state === "gone" ? "deleted" : "";
    const line = createSvg("text", { class: "dim", x: 12, y: 37 }, group);
    if (verdict) createSvg("tspan", { class: "word" }, line, verdict);
    const details = [box.platform, owners, note].filter(Boolean).join(" \u00b7 ");
    truncateToFit(line, createSvg("tspan", {}, line, verdict ? ` \u00b7 ${details}` : details), box.w - 24);
    const columns = box.columns || [];
    const visible = columns.length > picture.maxColumns ? columns.slice(0, picture.maxColumns) : columns;
    visible.forEach((column, number) => {
      const row = createSvg("g", { class: "column", transform: `translate(0 ${picture.headerHeight + number * picture.rowHeight})` }, group);
      createSvg("rect", { x: 2, width: box.w - 4, height: picture.rowHeight, rx: 4 }, row);
      const label = createSvg("text", { x: 16, y: 14 }, row, column);
      truncateToFit(label, label, box.w - 28);
      rows.set(key(box.urn, column), row);
      row.addEventListener("click", event => { if (!moved) { event.stopPropagation(); select(box.urn, column); } });
    });
    if (columns.length > visible.length) {
      createSvg("text", { class: "dim", x: 16, y: picture.headerHeight + visible.length * picture.rowHeight + 14 }, group,
        `and ${columns.length - visible.length} more`);
    }
    group.addEventListener("click", event => { if (!moved) { event.stopPropagation(); select(box.urn, null); } });
    group.addEventListener("keydown", event => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      select(box.urn, null);
    });
    // Keyboard navigation scrolls to the focused box.
    group.addEventListener("focus", () => { if (group.matches(":focus-visible")) reveal(box); });
    frames.set(box.urn, group);
  };
  boxes.forEach(drawBox);

  // The lines upstream or downstream of a dataset or column.
  const linesFrom = (urn, column, direction) => {
    const visited = new Set([column === null ? urn : key(urn, column)]), found = new Set(), pending = [[urn, column]];
    while (pending.length) {
      const [currentUrn, currentColumn] = pending.pop();
      for (const line of lines) {
        const { arrow, from, to } = line;
        const [near, nearColumn, far, farColumn] = direction === "down"
          ? [arrow.upstream, from, arrow.downstream, to] : [arrow.downstream, to, arrow.upstream, from];
        if (near !== currentUrn || (currentColumn !== null && nearColumn !== currentColumn && nearColumn !== null)) continue;
        if (currentColumn !== null && nearColumn === null && direction === "down") continue;
        found.add(line);
        const next = currentColumn === null ? far : farColumn === null ? null : key(far, farColumn);
        if (next !== null && !visited.has(next)) {
          visited.add(next);
          pending.push([far, currentColumn === null ? null : farColumn]);
        }
      }
    }
    return found;
  };

  let selected = null, lastReveal = null;
  const clearHighlights = () => {
    for (const node of [...frames.values(), ...lines.map(line => line.path)]) node.classList.remove("dull", "up", "down", "chosen");
    for (const row of rows.values()) row.classList.remove("lit");
  };
  const clearSelection = () => {
    selected = null;
    clearHighlights();
    panel.hidden = true;
    // Restore the position from before the panel opened, unless the user has moved the view since.
    if (lastReveal && lastReveal.left === left && lastReveal.top === top) [left, top] = lastReveal.from;
    lastReveal = null;
    apply();
  };
  const select = (urn, column) => {
    clearHighlights();
    selected = [byUrn.get(urn), column];
    frames.get(urn).classList.add("chosen");
    const up = linesFrom(urn, column, "up"), down = linesFrom(urn, column, "down");
    const near = new Set([urn]);
    const highlight = (urn, column) => { near.add(urn); rows.get(key(urn, column))?.classList.add("lit"); };
    for (const line of lines) {
      const isUp = up.has(line), isDown = down.has(line);
      line.path.classList.toggle("up", isUp);
      line.path.classList.toggle("down", isDown && !isUp);
      line.path.classList.toggle("dull", !isUp && !isDown);
      if (isUp || isDown) {
        if (column === null) { near.add(line.arrow.upstream); near.add(line.arrow.downstream); }
        else { highlight(line.arrow.upstream, line.from); highlight(line.arrow.downstream, line.to); }
      }
    }
    if (column !== null) rows.get(key(urn, column))?.classList.add("lit");
    for (const [each, frame] of frames) frame.classList.toggle("dull", !near.has(each));
    showDetails(byUrn.get(urn), column);
    const from = lastReveal && lastReveal.left === left && lastReveal.top === top ? lastReveal.from : [left, top];
    reveal(...selected);
    lastReveal = { from, left, top };
  };

  const position = each => each.file ? `${each.file}${each.line ? ":" + each.line : ""}` : "";
  const showImpact = impact => {
    createHtml("p", verdictText(impact), panel, `verdict ${impact.affected === false ? "" : impact.verdict || "focus"}`);
    const addList = (title, items, add) => {
      if (!(items || []).length) return;
      createHtml("h3", title, panel);
      const list = createHtml("ul", null, panel);
      for (const each of items.slice(0, 60)) add(each, createHtml("li", null, list));
      if (items.length > 60) createHtml("li", `and ${items.length - 60} more`, list, "dim");
    };
    const addText = (each, item) => { item.textContent = each; };
    addList("Change", impact.changes, addText);
    addList(impact.reasons && impact.reasons.length > 1 ? "Reasons" : "Reason", impact.reasons, (each, item) => {
      createHtml("span", each.text, item, each.verdict);
      if (each.clause && each.clause !== "*") createHtml("pre", each.clause, item);
      if (each.where) createHtml("p", each.where, item, "where");
      if ((each.path || []).length > 1) createHtml("p", `via ${each.path.join(" \u2192 ")}`, item, "dim");
    });
    addList("Columns that change", impact.columns, addText);
    addList("Recommendations", impact.recommendations, addText);
  };
  const showDetails = (box, column) => {
    panel.replaceChildren();
    panel.hidden = false;
    panel.scrollTop = 0;
    const close = createHtml("button", "\u00d7", panel, "close");
    close.setAttribute("aria-label", "Close");
    close.onclick = closePanel;
    createHtml("h2", column === null ? box.name : `${box.name}.${column}`, panel);
    createHtml("p", box.urn, panel, "dim");
    const owners = (box.owners || []).join(", ");
    if (owners || box.impact) createHtml("p", `Owner: ${owners || "no owner is known"}`, panel);
    if (!box.state) createHtml("p", "Known from lineage only, not scanned.", panel, "dim");
    else if (box.state !== "live") createHtml("p", "No longer exists.", panel, "dim");
    if (box.impact) showImpact(box.impact);
    const addSection = (title, side, otherSide) => {
      const found = arrows.filter(arrow => arrow[side] === box.urn);
      if (!found.length) return;
      createHtml("h3", title, panel);
      const list = createHtml("ul", null, panel);
      for (const arrow of found) {
        const columns = (arrow.columns || []).filter(each => column === null || each[side] === column);
        const uses = (arrow.uses || []).filter(each => column === null || each[side] === column || (side === "downstream" && !each.downstream));
        if (column !== null && !columns.length && !uses.length) continue;
        const item = createHtml("li", null, list);
        createHtml("strong", byUrn.get(arrow[otherSide])?.name ?? arrow[otherSide], item);
        const details = [(arrow.type || "TRANSFORMED").toLowerCase(), ...(arrow.origins || []), ...(arrow.jobs || [])];
        createHtml("span", ` ${details.join(" \u00b7 ")}`, item, "dim");
        const inner = createHtml("ul", null, item);
        for (const each of columns.slice(0, 60)) {
          const row = createHtml("li", null, inner);
          createHtml("code", `${each.upstream} \u2192 ${each.downstream}`, row);
          const details = [each.transformation && each.transformation !== each.upstream ? each.transformation : "", position(each)].filter(Boolean);
          if (details.length) createHtml("span", ` ${details.join(" \u00b7 ")}`, row, "dim");
        }
        if (columns.length > 60) createHtml("li", `and ${columns.length - 60} more columns`, inner, "dim");
        for (const each of uses.slice(0, 60)) {
          const row = createHtml("li", null, inner);
          createHtml("code", `${each.usage}: ${each.upstream}`, row);
          const details = [each.expression, position(each)].filter(Boolean);
          if (details.length) createHtml("span", ` ${details.join(" \u00b7 ")}`, row, "dim");
        }
      }
    };
    addSection("Upstream", "downstream", "upstream");
    addSection("Downstream", "upstream", "downstream");
  };

  // Pan and zoom.
  let scale = 1, left = 0, top = 0, moved = false, dragStart = null;
  const apply = () => view.setAttribute("transform", `translate(${left} ${top}) scale(${scale})`);
  const zoom = (factor, x, y) => {
    const next = Math.min(4, Math.max(0.03, scale * factor));
    left = x - (x - left) * next / scale;
    top = y - (y - top) * next / scale;
    scale = next;
    apply();
  };
  // Move the view as little as possible to show a dataset, or one of its columns, next to the panel.
  const reveal = (box, column = null) => {
    const area = svg.getBoundingClientRect(), margin = 16;
    const isRow = column !== null && rows.has(key(box.urn, column));
    const y = isRow ? rowY(box, column) - picture.rowHeight / 2 : box.y, h = isRow ? picture.rowHeight : box.h;
    const shift = (start, size, room) => start < margin || size > room - 2 * margin ? margin - start
      : Math.min(0, room - margin - start - size);
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
  const viewCenter = () => { const area = svg.getBoundingClientRect(); return [area.width / 2, area.height / 2]; };
  svg.addEventListener("wheel", event => {
    event.preventDefault();
    const area = svg.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 500), event.clientX - area.left, event.clientY - area.top);
  }, { passive: false });
  svg.addEventListener("pointerdown", event => { dragStart = [event.clientX, event.clientY]; moved = false; });
  addEventListener("pointermove", event => {
    if (!dragStart) return;
    const dx = event.clientX - dragStart[0], dy = event.clientY - dragStart[1];
    if (!moved && Math.abs(dx) + Math.abs(dy) < 4) return;
    moved = true;
    svg.classList.add("moving");
    left += dx; top += dy;
    dragStart = [event.clientX, event.clientY];
    apply();
  });
  addEventListener("pointerup", () => { dragStart = null; svg.classList.remove("moving"); });
  // A picture that is too large to be readable at once starts at the dataset in question.
  const start = () => {
    fit();
    if (!boxes.length || scale >= 0.4) return;
    const area = svg.getBoundingClientRect(), box = byUrn.get(picture.urn) || boxes[0];
    scale = 0.8;
    left = Math.min(area.width / 2 - (box.x + box.w / 2) * scale, 30 - Math.min(...boxes.map(b => b.x)) * scale);
    top = area.height / 2 - (box.y + box.h / 2) * scale;
    apply();
  };
  const closePanel = () => {
    const frame = selected && frames.get(selected[0].urn);
    clearSelection();
    if (frame) frame.focus({ preventScroll: true });
  };
  svg.addEventListener("click", () => { if (!moved) clearSelection(); });
  addEventListener("keydown", event => { if (event.key === "Escape" && selected) closePanel(); });
  addEventListener("resize", () => { if (selected) reveal(...selected); else start(); });
  document.getElementById("in").onclick = () => zoom(1.3, ...viewCenter());
  document.getElementById("out").onclick = () => zoom(1 / 1.3, ...viewCenter());
  document.getElementById("fit").onclick = fit;
  // Typing shows the first match, Enter the next one.
  let matches = [], match = 0;
  const find = document.getElementById("find");
  const selectNextMatch = () => {
    if (!matches.length) { clearSelection(); return; }
    select(...matches[match++ % matches.length]);
  };
  find.addEventListener("input", () => {
    const query = find.value.trim().toLowerCase(), matchesQuery = text => text.toLowerCase().includes(query);
    matches = query ? boxes.filter(box => matchesQuery(box.name) || matchesQuery(box.urn)).map(box => [box.urn, null]) : [];
    if (query && !matches.length) {
      matches = boxes.flatMap(box => (box.columns || []).filter(matchesQuery).map(column => [box.urn, column]));
    }
    match = 0;
    selectNextMatch();
  });
  find.addEventListener("keydown", event => { if (event.key === "Enter") selectNextMatch(); });
  document.getElementById("sum").textContent = `${plural(boxes.length, "dataset")}, ${plural(arrows.length, "edge")}`
    + (picture.truncated ? ` \u00b7 ${picture.total} within reach, the nearest are shown` : "")
    + ((picture.cycles || []).length ? ` \u00b7 ${plural(picture.cycles.length, "cycle")}` : "");
  for (const mark of ["breaking", "undetermined", "compatible"]) {
    const marked = boxes.filter(box => box.mark === mark), button = document.querySelector(`button.${mark}`);
    let next = 0;
    button.hidden = !marked.length;
    button.textContent = `${marked.length} ${mark}`;
    button.title = `Show the next ${mark} dataset`;
    button.onclick = () => select(marked[next++ % marked.length].urn, null);
  }
  start();
  if (picture.column) select(picture.urn, picture.column);
})();
