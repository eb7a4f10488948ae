// Raised whenever the behaviour of the link or the form of its report changes: trials record it.
#pragma once

#define WIRE_VERSION "7"
