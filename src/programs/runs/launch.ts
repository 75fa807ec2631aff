import { type OptionTable, optionValue, readOptions } from './options.ts';
import { type Call, NOTHING, type Runs, refused, runWords } from './runner.ts';

/** Programs of the form `name [options] [operands] command…`. */
export interface Launcher {
  readonly options: OptionTable;
  /** Operands before the command. */
  readonly operands?: number;
  /** Options whose value is the directory of the command. */
  readonly directory?: readonly string[];
  /** Options may also stand behind the operands. */
  readonly optionsBehind?: boolean;
  /** Options that make the program run nothing. */
  readonly inert?: readonly string[];
}

/** Runs what stands behind options and operands. */
export function launch(launcher: Launcher, call: Call): Runs {
  const read = readOptions(call.words.slice(1), launcher.options);
  if (!read.ok) return refused(`${call.name}: ${read.message}`, read.word);
  if (read.options.some((option) => launcher.inert?.includes(option.name))) return NOTHING;
  const operands = read.rest.slice(0, launcher.operands ?? 0);
  const dynamic = operands.find((word) => word.value === undefined);
  if (dynamic !== undefined) {
    return refused(
      `${call.name}: ${dynamic.source} must be written out, or it is not clear what runs.`,
      dynamic,
    );
  }
  const behind = readOptions(
    read.rest.slice(operands.length),
    launcher.optionsBehind ? launcher.options : {},
  );
  if (!behind.ok) return refused(`${call.name}: ${behind.message}`, behind.word);
  const directory = optionValue(read.options, ...(launcher.directory ?? []));
  return runWords(behind.rest, directory === undefined ? {} : { directory });
}
