// What the page is made of. Everything that it shows becomes text, never markup; the policy of the page forbids the rest.

/** An element with a class ('': none) and what is in it. */
export function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  className: string,
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  if (className !== '') element.className = className;
  element.append(...children);
  return element;
}

/** Text in which escapes stand out. The server has made sure that nothing else looks like one. */
export function shown(text: string): DocumentFragment {
  const parts = document.createDocumentFragment();
  for (const piece of text.split(/(\\u\{[0-9a-f]+\})/)) {
    if (/^\\u\{[0-9a-f]+\}$/.test(piece)) {
      const mark = make('mark', '', piece);
      mark.title = 'a character that would not be visible';
      parts.append(mark);
    } else if (piece !== '') parts.append(piece);
  }
  return parts;
}

/** One fact of a list: its name, and a line for each value. Without a value there is none. */
export function fact(name: string, ...values: readonly string[]): readonly HTMLElement[] {
  if (values.length === 0) return [];
  const lines = values.map((value) => make('div', 'mono', shown(value)));
  return [make('dt', '', name), make('dd', '', ...lines)];
}
