// The page's elements: found, made, and written only where the text is another one.

export const byId = (id) => document.getElementById(id);

export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function toggle(element, text) {
  element.hidden = !text;
  write(element, text ?? "");
}

export function say(sentence) {
  write(byId("status"), sentence);
}

export function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
