import { type ProgramRow, programs } from '../behaviour.ts';

/** Programs that look after processes and machines without being refused outright. */
export const SYSTEM: readonly ProgramRow[] = [
  ...programs(
    'renice prlimit sync timedatectl hostnamectl localectl loginctl busctl dbus-send gdbus gsettings dconf logger wall write mesg xhost xrandr setterm chvt openvt loadkeys',
    'high',
    'local',
    {
      operands: 'none',
    },
  ),
  ...programs('xdotool xte ydotool wmctrl gnome-terminal xterm konsole', 'high', 'unknown', {
    operands: 'none',
  }),
];
