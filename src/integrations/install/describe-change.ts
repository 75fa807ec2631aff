/** The lines that a change takes away and adds, as a diff shows them: all between what is the same before and after. */
export function describeChange(before: string, after: string): string {
  const [old, now] = [lines(before), lines(after)];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (
    end < old.length - start &&
    end < now.length - start &&
    old[old.length - 1 - end] === now[now.length - 1 - end]
  )
    end += 1;
  const part = (list: readonly string[], mark: string) =>
    list.slice(start, list.length - end).map((line) => `${mark}${line}\n`);
  return [`@@ line ${start + 1} @@\n`, ...part(old, '-'), ...part(now, '+')].join('');
}

function lines(text: string): readonly string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}
