import { make } from './elements.ts';

/** An element with buttons that do not hear what was meant for something else. */
export interface LiveCard {
  readonly element: HTMLLIElement;
  /** A button of it. What a script clicks is not what a person clicks. */
  button(name: string, className: string, meaning: string, act: () => void): HTMLButtonElement;
  /** Its buttons are deaf for a moment: what slid under the pointer must not be clicked. */
  deafen(): void;
  /** If it moved since the last call, they are deaf again. */
  noticeMove(): void;
  /**
   * Does what takes a while, deaf meanwhile. `work` resolves to why it failed, or to nothing. `goes`: the card goes then, and
   * stays deaf until it does.
   */
  attempt(work: () => Promise<string | undefined>, goes: boolean): Promise<void>;
}

const INERT_MS = 500;

/** @see LiveCard. `resized`: it has changed its size. */
export function createLiveCard(id: string, resized: () => void): LiveCard {
  let readyAt = 0;
  let busy = false;
  let place = '';
  const card = make('li', 'request');
  card.tabIndex = -1;
  card.dataset.id = id;

  const isDeaf = () => busy || performance.now() < readyAt;

  function refresh(): void {
    for (const each of card.querySelectorAll('button')) each.setAttribute('aria-disabled', String(isDeaf()));
  }

  function deafen(): void {
    readyAt = performance.now() + INERT_MS;
    refresh();
    setTimeout(refresh, INERT_MS + 20);
  }

  return {
    element: card,
    deafen,
    button(name, className, meaning, act) {
      const element = make('button', className, name);
      element.type = 'button';
      element.title = meaning;
      element.setAttribute('aria-disabled', 'true');
      element.addEventListener('click', (event) => {
        if (event.isTrusted && !isDeaf()) act();
      });
      return element;
    },
    noticeMove() {
      const box = card.getBoundingClientRect();
      const seen = [box.top + scrollY, box.width, box.height].map(Math.round).join();
      if (seen === place) return;
      place = seen;
      deafen();
    },
    async attempt(work, goes) {
      busy = true;
      refresh();
      card.querySelector('.problem')?.remove();
      const problem = await work();
      if (problem === undefined && goes) return;
      busy = false;
      if (problem !== undefined) card.append(make('p', 'problem', problem));
      deafen();
      resized();
    },
  };
}
