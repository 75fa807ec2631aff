import { isObject, type StoredRecord, textOf } from './stored-record.ts';

/** Records that are missing in a trail. */
interface Gap {
  readonly first: number;
  readonly last: number;
  readonly file: string;
  readonly line: number;
}

/** The gaps of a trail, as its records are shown in their order. */
interface Gaps {
  add(gap: Gap): void;
  /** A record that was missing until now; false: it was not. */
  takeOne(seq: number): boolean;
  /** What a record acknowledges is none any more, if it is exactly that; false: it is not. */
  acknowledge(record: StoredRecord, isFirst: boolean): boolean;
  all(): readonly Gap[];
}

export function createGaps(): Gaps {
  const gaps: Gap[] = [];
  return {
    add: (gap) => void gaps.push(gap),
    takeOne: (seq) => {
      const index = gaps.findIndex((gap) => gap.first <= seq && seq <= gap.last);
      const gap = gaps[index];
      if (gap === undefined) return false;
      const parts = [
        { ...gap, last: seq - 1 },
        { ...gap, first: seq + 1 },
      ];
      gaps.splice(index, 1, ...parts.filter((part) => part.first <= part.last));
      return true;
    },
    acknowledge: ({ seq, fields }, isFirst) => {
      const details = isObject(fields.details) ? fields.details : {};
      // What is missing before the first record that is there are older files.
      if (isFirst) return true;
      const index = gaps.findIndex((gap) => gap.last === seq - 1);
      const gap = gaps[index];
      if (gap === undefined) return details.missing === 0;
      if (details.last !== gap.first - 1 || details.missing !== gap.last - gap.first + 1) return false;
      gaps.splice(index, 1);
      return true;
    },
    all: () => gaps,
  };
}

/** An acknowledgement in a sentence. */
export function tellAcknowledged({ seq, fields }: StoredRecord): string {
  const kept = isObject(fields.details) ? (textOf(fields.details, 'kept') ?? '') : '';
  const torn = kept === '' ? '' : `; what was torn is in ${kept}`;
  return `record ${seq} (${textOf(fields, 'time')}) says ${textOf(fields, 'message') ?? 'that the trail was broken'}${torn}`;
}
